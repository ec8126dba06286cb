"""What a turn looks like on the wire."""

from __future__ import annotations

import pytest

from ropewalk_testing import ScriptError, reasoning, text, turn, use
from ropewalk_testing.streams import Stream
from ropewalk_testing.turns import as_turn


def events(value):
    stream = Stream(as_turn(value))
    return [*stream.named(1), *stream.tail]


def deltas(value):
    found = [event["contentBlockDelta"] for event in events(value) if "contentBlockDelta" in event]
    return [each["delta"] for each in found]


def test_a_text_turn_is_streamed_in_the_shapes_of_converse():
    assert events("hello") == [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hello"}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {
            "metadata": {
                "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
                "metrics": {"latencyMs": 0},
            }
        },
    ]


def test_a_tool_use_streams_its_arguments_as_json_and_stops_with_tool_use():
    assert events([text("I add."), use("add", {"a": 1}, id="T1")])[4:8] == [
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "T1", "name": "add"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a": 1}'}}}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def test_a_tool_use_without_an_id_gets_one_per_call():
    stream = Stream(as_turn(["first", use("add")]))

    named = [stream.named(call)[4]["contentBlockStart"]["start"]["toolUse"]["toolUseId"] for call in (1, 2)]

    assert named == ["use_1_1", "use_2_1"]


def test_an_empty_id_given_on_purpose_is_kept():
    assert events(use("add", id=""))[1]["contentBlockStart"]["start"] == {"toolUse": {"toolUseId": "", "name": "add"}}


@pytest.mark.parametrize(
    ("arguments", "streamed"),
    [
        (None, ["{}"]),
        ({}, ["{}"]),
        ("", []),
        ("{not json", ["{not json"]),
        ([1], ["[1]"]),
    ],
)
def test_tool_input_of_any_kind_can_be_streamed(arguments, streamed):
    assert deltas(use("add", arguments)) == [{"toolUse": {"input": piece}} for piece in streamed]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [(1, ["abcdefg"]), (2, ["abc", "defg"]), (3, ["ab", "cd", "efg"]), (50, list("abcdefg"))],
)
def test_deltas_cuts_a_text_into_pieces_none_of_them_empty(pieces, expected):
    assert deltas(turn("abcdefg", deltas=pieces)) == [{"text": piece} for piece in expected]


def test_thoughts_are_streamed_before_their_signature():
    assert deltas(turn(reasoning("hmm", "sig"), deltas=3)) == [
        {"reasoningContent": {"text": "h"}},
        {"reasoningContent": {"text": "m"}},
        {"reasoningContent": {"text": "m"}},
        {"reasoningContent": {"signature": "sig"}},
    ]
    assert deltas({"reasoningContent": {"redactedContent": b"x"}}) == [{"reasoningContent": {"redactedContent": b"x"}}]


def test_citations_follow_the_text_that_they_support():
    block = {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "A"}]}}

    assert deltas(block) == [{"text": "so"}, {"citation": {"title": "A"}}]


def test_an_empty_turn_has_a_start_and_a_stop():
    assert [next(iter(event)) for event in events([])] == ["messageStart", "messageStop", "metadata"]


def test_usage_is_a_pair_a_dict_or_left_out():
    full = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "cacheReadInputTokens": 9}

    assert events(turn("a", usage=(1, 2)))[-1]["metadata"]["usage"] == {
        "inputTokens": 1,
        "outputTokens": 2,
        "totalTokens": 3,
    }
    assert events(turn("a", usage=full))[-1]["metadata"]["usage"] == full
    assert next(iter(events(turn("a", usage=None))[-1])) == "messageStop"


def test_the_stop_reason_can_be_any_word():
    assert events(turn(use("add"), stop="content_filtered"))[-2] == {"messageStop": {"stopReason": "content_filtered"}}


def test_a_block_that_no_model_streams_is_refused():
    with pytest.raises(ScriptError, match="kind image has no form in a model's stream"):
        Stream(as_turn({"image": {}}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "7 is no turn of a script"),
        (None, "None is no turn of a script"),
        ({"text": "a", "toolUse": {}}, "is no content block"),
        ([["nested"]], r"\['nested'\] is no content block"),
    ],
)
def test_what_is_no_turn_is_refused(value, message):
    with pytest.raises(ScriptError, match=message):
        as_turn(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"raw": [], "cut": True}, "gives the whole stream"),
        ({"cut": True, "error": ValueError()}, "give one of them"),
        ({"deltas": 0}, "at least 1 piece"),
    ],
)
def test_a_turn_that_contradicts_itself_is_refused(given, message):
    with pytest.raises(ScriptError, match=message):
        turn(**given)


def test_interleaved_blocks_take_turns():
    found = events(turn("abc", use("now", "{}"), deltas=3, interleave=True))

    assert [(next(iter(event)), event[next(iter(event))]["contentBlockIndex"]) for event in found[1:-2]] == [
        ("contentBlockStart", 0),
        ("contentBlockStart", 1),
        ("contentBlockDelta", 0),
        ("contentBlockDelta", 1),
        ("contentBlockDelta", 0),
        ("contentBlockDelta", 1),
        ("contentBlockDelta", 0),
        ("contentBlockStop", 1),
        ("contentBlockStop", 0),
    ]
