"""Blocks of thinking go back with the signatures that came with them (scenario A4)."""

from __future__ import annotations

import pytest
from stream_events import BEGIN, END, chunk, end, said, stop, thinking, thought, words

from ropewalk_testing import turn

EVENTS = [
    BEGIN,
    thought(0, text="a"), thought(0, signature="S1"), end(0),
    thought(1, text="b"), thought(1, signature="S"), thought(1, signature="2"), end(1),
    thought(2, redactedContent=b"\x01"), end(2),
    thought(3, text="c"), end(3),
    thought(4, text=""), thought(4, signature="S4"), end(4),
    said(5, "so"), end(5),
    stop("end_turn"),
]  # fmt: skip
THOUGHTS = [
    {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S1"}}},
    {"reasoningContent": {"reasoningText": {"text": "b", "signature": "S2"}}},
    {"reasoningContent": {"redactedContent": b"\x01"}},
    {"reasoningContent": {"reasoningText": {"text": "c"}}},
    {"reasoningContent": {"reasoningText": {"text": "", "signature": "S4"}}},
]


TAKES_UNSIGNED = {"settings": {"model_id": "qwen.qwen3-32b-v1:0"}}  # Claude refuses what it has not signed


@pytest.mark.parametrize(
    ("provider", "given", "redacted"),
    [("scripted", {}, b"\x01"), ("bedrock", TAKES_UNSIGNED, "AQ==")],
    ids=["scripted", "bedrock"],
    indirect=["provider"],
)
def test_thinking_is_sent_back_with_each_blocks_own_signature(ask, provider, given, redacted):
    """Scenario A4."""
    agent, server = provider.make([provider.stream(EVENTS), "ok"], **given)

    ask(agent, "go")
    ask(agent, "again")

    assert agent.messages[1]["content"] == [*THOUGHTS, {"text": "so"}]
    hidden = {"reasoningContent": {"redactedContent": redacted}}
    assert provider.sent(server)[1]["content"] == [*THOUGHTS[:2], hidden, *THOUGHTS[3:], {"text": "so"}]


def test_claude_gets_back_every_signature_that_it_gave(ask, bedrock):
    """Scenario A4: what is not signed, it would refuse."""
    agent, server = bedrock.make([bedrock.stream(EVENTS), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    thoughts = [
        block["reasoningContent"]["reasoningText"]
        for block in bedrock.sent(server)[1]["content"]
        if "reasoningText" in block.get("reasoningContent", {})
    ]
    signed = [each for each in thoughts if "signature" in each]
    assert [(each["text"], each["signature"]) for each in signed] == [("a", "S1"), ("b", "S2"), ("", "S4")]
    assert {"reasoningContent": {"redactedContent": "AQ=="}} in bedrock.sent(server)[1]["content"]


def test_thinking_is_sent_back_through_litellm_where_it_is_signed(ask, litellm):
    """Scenario A4."""
    events = [
        thinking(thinking="a"), thinking(signature="S1"),
        thinking(thinking="b"), thinking(signature="S"), thinking(signature="2"),
        chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "AQ=="}]}),
        thinking(thinking="c"),
        words("so"),
        thinking(signature="S4"),
        *END,
    ]  # fmt: skip
    agent, server = litellm.make([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    assert [block for block in agent.messages[1]["content"] if "reasoningContent" in block] == THOUGHTS
    assert litellm.sent(server)[1] == {
        "role": "assistant",
        "content": "so",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "a", "signature": "S1"},
            {"type": "thinking", "thinking": "b", "signature": "S2"},
            {"type": "redacted_thinking", "data": "AQ=="},
            {"type": "thinking", "thinking": "", "signature": "S4"},
        ],
    }


@pytest.mark.parametrize("first", [[thought(0, text="")], []], ids=["with an empty text", "without a text"])
def test_a_signature_without_text_is_kept(ask, scripted, first):
    """Scenario A4."""
    events = [BEGIN, *first, thought(0, signature="S1"), end(0), said(1, "so"), end(1), stop("end_turn")]
    agent, model = scripted.make([scripted.stream(events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    expected = {"reasoningContent": {"reasoningText": {"text": "", "signature": "S1"}}}
    assert scripted.sent(model)[1]["content"] == [expected, {"text": "so"}]


def test_a_signature_does_not_leak_into_the_next_block(ask, scripted):
    """Scenario A4."""
    events = [
        BEGIN,
        thought(0, text="a"), thought(0, signature="S1"), end(0),
        thought(1, text="b"), end(1),
        said(2, "so"), end(2),
        stop("end_turn"),
    ]  # fmt: skip
    agent, model = scripted.make([scripted.stream(events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    unsigned = {"reasoningContent": {"reasoningText": {"text": "b"}}}
    assert agent.messages[1]["content"][1] == unsigned
    assert scripted.sent(model)[1]["content"][1] == unsigned
