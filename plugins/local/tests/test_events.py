from __future__ import annotations

import pytest

from ropewalk.errors import IncompleteStreamError
from ropewalk_local.answer import ReplyDecoder
from ropewalk_local.events import EventWriter


def written(decoder, *contents, finish="stop", **delta):
    writer = EventWriter(decoder)
    events = [writer.start()]
    for content in contents:
        events += writer.chunk({"choices": [{"finish_reason": None, "delta": {"content": content}}]})

    events += writer.chunk({"choices": [{"finish_reason": finish, "delta": delta}]})
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    events += writer.chunk({"choices": [], "usage": usage})
    return [*events, *writer.end(5)]


END = {
    "metadata": {
        "usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9},
        "metrics": {"latencyMs": 5},
    }
}


def text_delta(text, index=0):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}


def test_plain_text_is_one_block():
    assert written(None, None, "Hel", "lo") == [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {}}},
        text_delta("Hel"),
        text_delta("lo"),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        END,
    ]


def test_a_call_is_a_tool_block_and_a_stop_for_tools():
    events = written(ReplyDecoder(), '{"tool": "add", "arguments"', ': {"a": ', "1}}")

    start = events[1]["contentBlockStart"]["start"]["toolUse"]
    assert start["name"] == "add"
    assert start["toolUseId"].startswith("tooluse_")
    deltas = [e["contentBlockDelta"]["delta"]["toolUse"]["input"] for e in events if "contentBlockDelta" in e]
    assert deltas == ['{"a": ', "1}"]
    assert events[-2] == {"messageStop": {"stopReason": "tool_use"}}


def test_ids_of_calls_are_unique():
    ids = {
        written(ReplyDecoder(), '{"tool": "a"}')[1]["contentBlockStart"]["start"]["toolUse"]["toolUseId"]
        for _ in range(20)
    }

    assert len(ids) == 20


def test_a_cut_call_stops_for_tokens_and_not_for_tools():
    events = written(ReplyDecoder(), '{"tool": "add", "arguments": {"a', finish="length")

    assert events[-2] == {"messageStop": {"stopReason": "max_tokens"}}


def test_an_empty_answer_is_an_empty_block():
    assert written(ReplyDecoder(), '{"answer": ""}')[1:-2] == [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
    ]


def test_thinking_is_a_block_before_the_text():
    writer = EventWriter(None)
    events = [
        *writer.chunk({"choices": [{"delta": {"reasoning_content": "hm"}}]}),
        *writer.chunk({"choices": [{"delta": {"content": "so"}}]}),
    ]

    assert events[1] == {
        "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}},
    }
    assert events[2:] == [
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {}}},
        text_delta("so", 1),
    ]


def test_an_unknown_finish_passes_through():
    assert written(None, "a", finish="odd")[-2] == {"messageStop": {"stopReason": "odd"}}


def test_progress_of_the_prompt_is_no_event():
    writer = EventWriter(None)

    assert list(writer.chunk({"choices": [{"delta": {"role": "assistant"}}], "prompt_progress": {"total": 9}})) == []


@pytest.mark.parametrize("finish", [None, ""])
def test_an_answer_that_the_runtime_never_ended_is_incomplete(finish):
    with pytest.raises(IncompleteStreamError):
        written(None, "half", finish=finish)
