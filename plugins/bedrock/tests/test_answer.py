from __future__ import annotations

import pytest

from ropewalk.errors import IncompleteStreamError
from ropewalk.kits.messages.assembly import Assembly
from ropewalk_bedrock.answer import Reader, events_of
from ropewalk_bedrock.settings import Settings

USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "cacheReadInputTokens": 4}


def answer(*content, stop="end_turn", **more):
    message = {"role": "assistant", "content": list(content)}
    return {"output": {"message": message}, "stopReason": stop, "usage": USAGE, "metrics": {"latencyMs": 7}, **more}


def assembled(response):
    assembly = Assembly()
    for event in events_of(response):
        assembly.feed(event)

    return assembly.finish(lambda use_id, _: use_id)


def test_a_whole_answer_becomes_the_same_message_as_a_stream():
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}},
        {"reasoningContent": {"redactedContent": b"\x01"}},
        {"text": "so"},
        {"citationsContent": {"content": [{"text": "as said"}], "citations": [{"title": "T"}]}},
        {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1}}},
    ]

    outcome = assembled(answer(*content, stop="tool_use"))

    assert outcome.message["content"] == content
    assert outcome.stop_reason == "tool_use"
    assert (outcome.usage, outcome.latency_ms) == (USAGE, 7)


def test_fields_that_were_asked_for_come_with_the_stop():
    events = list(events_of(answer({"text": "x"}, additionalModelResponseFields={"stop_sequence": "END"})))

    assert events[-2] == {
        "messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": {"stop_sequence": "END"}}
    }


def test_blocks_that_nobody_knows_are_passed_over():
    outcome = assembled(answer({"SDK_UNKNOWN_MEMBER": {"name": "hologram"}}, {"text": "x"}, {"audio": {}}, {}))

    assert outcome.message["content"] == [{"text": "x"}]


@pytest.mark.parametrize("response", [{}, {"output": None}, {"output": {}}, {"output": {"message": None}}], ids=str)
def test_an_answer_without_a_message_is_incomplete(response):
    with pytest.raises(IncompleteStreamError):
        list(events_of(response))


def read(*events):
    reader = Reader(Settings())
    return [each for event in events for each in reader.read(event)]


def delta(index, **piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}


@pytest.mark.parametrize(
    "event",
    [
        {"SDK_UNKNOWN_MEMBER": {"name": "novelty"}},
        {},
        delta(0, SDK_UNKNOWN_MEMBER={"name": "novelty"}),
        delta(0, reasoningContent={"SDK_UNKNOWN_MEMBER": {"name": "novelty"}}),
        delta(0, image={"source": {"bytes": b"x"}}),
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {}}},
        {"contentBlockDelta": {"contentBlockIndex": 0}},
    ],
    ids=str,
)
def test_events_that_nobody_knows_are_passed_over(event):
    assert read(event) == []


def test_tools_that_the_provider_runs_itself_are_not_handed_on():
    use = {"toolUseId": "S1", "name": "search", "type": "server_tool_use"}
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}},
        delta(0, toolUse={"input": '{"q": 1}'}),
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "S1"}}}},
        delta(1, toolResult=[{"text": "found"}]),
        delta(2, text="x"),
    ]

    assert read(*events) == [delta(2, text="x")]
