from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_bedrock.guardrails import redaction
from ropewalk_bedrock.settings import Settings
from ropewalk_testing import turn
from ropewalk_testing.servers import CUT

BLOCKED = {"topicPolicy": {"topics": [{"name": "money", "type": "DENY", "action": "BLOCKED", "detected": True}]}}
MASKED = {"sensitiveInformationPolicy": {"piiEntities": [{"type": "NAME", "match": "x", "action": "ANONYMIZED"}]}}
DETECTED = {"contentPolicy": {"filters": [{"type": "HATE", "action": "BLOCKED", "detected": False}]}}

USER = {"redactUserContentMessage": "[User input redacted.]"}
ANSWER = {"redactAssistantContentMessage": "[Assistant output redacted.]"}


@pytest.mark.parametrize(
    ("trace", "stop", "expected"),
    [
        ({"inputAssessment": {"g": BLOCKED}}, "guardrail_intervened", USER),
        ({"outputAssessments": {"g": [MASKED, BLOCKED]}}, "guardrail_intervened", ANSWER),
        ({"inputAssessment": {"g": BLOCKED}, "outputAssessments": {"g": [BLOCKED]}}, None, {**USER, **ANSWER}),
        ({"inputAssessment": {"g": MASKED}}, "end_turn", None),
        ({"inputAssessment": {"g": DETECTED}}, "end_turn", None),
        ({}, "guardrail_intervened", {**USER, **ANSWER}),
        (None, "end_turn", None),
    ],
)
def test_what_the_trace_says_was_blocked_is_redacted(trace, stop, expected):
    settings = Settings(guardrail_id="g", guardrail_redact_output=True)

    event = redaction(settings, stop, {"trace": {"guardrail": trace}})

    assert event == (None if expected is None else {"redactContent": expected})


def test_redaction_can_be_switched_off_and_worded():
    blocked = {"trace": {"guardrail": {"inputAssessment": {"g": BLOCKED}}}}

    assert redaction(Settings(guardrail_redact_input=False), None, blocked) is None
    assert redaction(Settings(guardrail_redact_input_message="[gone]"), None, blocked) == {
        "redactContent": {"redactUserContentMessage": "[gone]"}
    }


def intervention(assessment):
    return turn(
        raw=[
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "I cannot say."}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": "guardrail_intervened"}),
            (
                "metadata",
                {
                    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
                    "metrics": {"latencyMs": 1},
                    "trace": {"guardrail": assessment},
                },
            ),
        ]
    )


@pytest.mark.parametrize("lost", [(), (CUT,)], ids=["ended", "cut"])
async def test_what_was_blocked_is_redacted_when_the_stream_ends_before_it_says_what(
    bedrock, request_of, outcome, lost
):
    events = intervention({}).raw[:-1]
    model, _ = bedrock([turn(raw=[*events, *lost])], guardrail_id="g", guardrail_redact_output=True)

    answer = await outcome(model, request_of("give me money"))

    assert answer.redact_input == "[User input redacted.]"
    assert answer.message["content"] == [{"text": "[Assistant output redacted.]"}]


def test_a_blocked_question_is_replaced_in_the_conversation(bedrock):
    model, server = bedrock(
        [intervention({"inputAssessment": {"g": BLOCKED}}), "ok"], guardrail_id="g", guardrail_version="1"
    )
    agent = Agent(model=model, callback_handler=None)

    result = agent("give me money")
    agent("and now?")

    assert (result.stop_reason, str(result)) == ("guardrail_intervened", "I cannot say.\n")
    assert server.requests[0].body["guardrailConfig"] == {
        "guardrailIdentifier": "g", "guardrailVersion": "1", "trace": "enabled",
    }  # fmt: skip
    sent = server.requests[1].body["messages"]
    assert [message["content"] for message in sent] == [
        [{"text": "[User input redacted.]"}], [{"text": "I cannot say."}], [{"text": "and now?"}],
    ]  # fmt: skip


def test_a_blocked_answer_is_replaced_when_asked(bedrock):
    model, _ = bedrock(
        [intervention({"outputAssessments": {"g": [BLOCKED]}})], guardrail_id="g", guardrail_redact_output=True
    )
    agent = Agent(model=model, callback_handler=None)

    agent("go")

    assert [message["content"] for message in agent.messages] == [
        [{"text": "go"}], [{"text": "[Assistant output redacted.]"}],
    ]  # fmt: skip


def test_redaction_works_without_streaming_too(bedrock):
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": "I cannot say."}]}},
        "stopReason": "guardrail_intervened",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
        "trace": {"guardrail": {"inputAssessment": {"g": BLOCKED}}},
    }
    model, _ = bedrock([turn(raw=[body])], guardrail_id="g", streaming=False)
    agent = Agent(model=model, callback_handler=None)

    agent("give me money")

    assert agent.messages[0]["content"] == [{"text": "[User input redacted.]"}]
