"""Streams taken apart, and what is found wrong with them."""

from __future__ import annotations

import pytest

from ropewalk_testing import reasoning, turn, use
from ropewalk_testing.answers import answer_of
from ropewalk_testing.streams import Stream

START = {"messageStart": {"role": "assistant"}}
TEXT = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}}
CLOSE = {"contentBlockStop": {"contentBlockIndex": 0}}
STOP = {"messageStop": {"stopReason": "end_turn"}}
USAGE = {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}}
WHOLE = [START, TEXT, CLOSE, STOP, USAGE]


def begun(start):
    return {"contentBlockStart": {"contentBlockIndex": 0, "start": start}}


def piece(delta, index=0):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def test_an_answer_is_put_together():
    said = turn(reasoning("hm", "sig"), "one ", "two", use("add", {"a": 1}, id="T"), deltas=3, interleave=True)
    stream = Stream(said)
    answer = answer_of([*stream.named(1), *stream.tail])

    assert answer.content == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"text": "one "},
        {"text": "two"},
        {"toolUse": {"toolUseId": "T", "name": "add", "input": '{"a": 1}'}},
    ]
    assert (answer.text, answer.stop, answer.usage["totalTokens"]) == ("one two", "tool_use", 15)


def test_a_text_needs_no_start_and_may_have_one():
    assert answer_of(WHOLE).text == answer_of([START, begun({}), *WHOLE[1:]]).text == "a"


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([], "without messageStop"),
        (WHOLE[:3], "without messageStop"),
        (WHOLE[:4], "without metadata"),
        (WHOLE[1:], "messageStart must come first"),
        ([START, *WHOLE], "event 1 .* messageStart must come first, and once"),
        ([{"messageStart": {"role": "user"}}], "the role of an answer is assistant"),
        ([START, {"odd": {}}], "one of the keys"),
        ([START, {"messageStop": {}, "metadata": {}}], "one of the keys"),
        ([START, "text"], "one of the keys"),
        ([START, {"messageStop": None}], "its value is no dict"),
        ([START, TEXT, STOP], r"blocks \[0\] were not stopped"),
        ([START, {"messageStop": {"stopReason": None}}], "stopReason is no text"),
        ([*WHOLE[:4], TEXT], "nothing but metadata"),
        ([START, USAGE], "metadata must follow"),
        ([*WHOLE[:4], {"metadata": {}}], "usage is missing"),
        (
            [*WHOLE[:4], {"metadata": {"usage": {"inputTokens": "1", "outputTokens": 1}}}],
            "'totalTokens', 'inputTokens'",
        ),
        ([START, CLOSE], "block 0 was not begun"),
        ([START, TEXT, CLOSE, CLOSE], "stopped already"),
        ([START, TEXT, CLOSE, TEXT], "stopped already"),
        ([START, TEXT, begun({})], "there already"),
        ([START, begun(None)], "start is no dict"),
        ([START, begun({"toolUse": {"toolUseId": "", "name": "a"}})], "'toolUseId': ID"),
        ([START, piece({"text": "a"}, index=None)], "contentBlockIndex is no number"),
        ([START, piece({})], "delta is no dict with one key"),
        ([START, piece({"odd": 1})], "a delta has one of the keys"),
        ([START, piece({"text": None})], "a NoneType in place of a text"),
        ([START, piece({"toolUse": {"input": "{"}})], "not begun as a tool use"),
        ([START, TEXT, piece({"reasoningContent": {"text": "hm"}})], "is of the kind text"),
        ([START, piece({"reasoningContent": {"signature": None}})], "reasoning is a text"),
    ],
)
def test_a_malformed_stream_is_told(events, fault):
    with pytest.raises(AssertionError, match=fault):
        answer_of(events)


def test_an_answer_that_was_cut_can_be_looked_at():
    assert answer_of([START, TEXT], complete=False).text == "a"
