from __future__ import annotations

from types import SimpleNamespace

import pytest

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk_litellm.calls import NO_INDEX
from ropewalk_litellm.events import EventWriter


def piece(index=NO_INDEX, use_id=None, name=None, arguments=None):
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(tool_calls=[SimpleNamespace(index=index, id=use_id, function=function)])


def said(**fields):
    return SimpleNamespace(**fields)


def written(*deltas, finish="stop"):
    writer = EventWriter()
    events = [writer.start()]
    for delta in deltas:
        events += writer.piece(delta)

    writer.finish(finish)
    return [*events, *writer.end(7)]


def calls_of(events):
    """(id, name, arguments) of each tool use, in the order of their blocks; made-up ids are None."""
    found = {}
    for event in events:
        start = event.get("contentBlockStart", {})
        if "toolUse" in start.get("start", {}):
            found[start["contentBlockIndex"]] = [
                start["start"]["toolUse"]["toolUseId"],
                start["start"]["toolUse"]["name"],
                "",
            ]

        delta = event.get("contentBlockDelta", {})
        if "toolUse" in delta.get("delta", {}):
            found[delta["contentBlockIndex"]][2] += delta["delta"]["toolUse"]["input"]

    return [tuple(None if part.startswith("tooluse_") else part for part in found[block]) for block in sorted(found)]


def blocks_of(events):
    """The deltas' contents by block."""
    found = {}
    for event in events:
        if "contentBlockDelta" in event:
            body = event["contentBlockDelta"]
            found.setdefault(body["contentBlockIndex"], []).append(body["delta"])

    return [found[block] for block in sorted(found)]


TWO = [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]
CALLS = {
    "an index that is repeated": (
        [piece(0, "c1", "f", '{"a":1}'), piece(0, "c2", "g", '{"b":'), piece(1, None, None, "2}")],
        TWO,
    ),
    "no indices": (
        [
            piece(use_id="c1", name="f", arguments='{"a":1}'),
            piece(use_id="c2", name="g", arguments='{"b":'),
            piece(arguments="2}"),
        ],
        TWO,
    ),
    "indices, then none": (
        [piece(0, "c1", "f", '{"a":1}'), piece(1, "c2", "g", '{"b":'), piece(arguments="2}")],
        TWO,
    ),
    "interleaved": (
        [
            piece(0, "c1", "f", '{"a"'),
            piece(1, "c2", "g", '{"b"'),
            piece(0, None, None, ":1}"),
            piece(1, None, None, ":2}"),
        ],
        TWO,
    ),
    "a known id at another index": (
        [piece(0, "c1", "f", '{"a"'), piece(1, "c2", "g", '{"b":2}'), piece(1, "c1", None, ":1}")],
        TWO,
    ),
    "id and arguments null on the head": (
        [piece(0, None, "f", None), piece(0, None, None, '{"a":1}')],
        [(None, "f", '{"a":1}')],
    ),
    "an id that comes late": (
        [piece(0, None, "f", None), piece(0, "c1", None, '{"a":'), piece(0, "c1", None, "1}")],
        [(None, "f", '{"a":1}')],
    ),
    "a name that comes late": (
        [piece(0, "c1", None, '{"a"'), piece(0, None, "f", ":1}")],
        [("c1", "f", '{"a":1}')],
    ),
    "id and name in every piece": (
        [
            piece(0, "c1", "f", '{"a"'),
            piece(0, "c1", "f", ":1"),
            piece(0, "c1", "f", "}"),
            piece(1, "c2", "g", '{"b":2}'),
        ],
        TWO,
    ),
    "the name in every piece, no id": (
        [piece(0, None, "f", '{"a"'), piece(0, None, "f", ":1}")],
        [(None, "f", '{"a":1}')],
    ),
    "heads alone, no ids, no indices": (
        [piece(name="f", arguments='{"a":1}'), piece(name="f", arguments='{"a":2}'), piece(name="g", arguments="{}")],
        [(None, "f", '{"a":1}'), (None, "f", '{"a":2}'), (None, "g", "{}")],
    ),
    "one id for two calls": (
        [piece(0, "c1", "f", '{"a":1}'), piece(1, "c1", "f", '{"a":'), piece(1, None, None, "2}")],
        [("c1", "f", '{"a":1}'), ("c1", "f", '{"a":2}')],
    ),
    "no name at all": ([piece(0, "c1", None, "{}")], [("c1", "", "{}")]),
    "a function of the old kind": (
        [
            said(function_call=SimpleNamespace(name="f", arguments="")),
            said(function_call=SimpleNamespace(name=None, arguments='{"a":1}')),
        ],
        [(None, "f", '{"a":1}')],
    ),
}


@pytest.mark.parametrize(("deltas", "calls"), CALLS.values(), ids=CALLS)
def test_pieces_of_tool_calls_find_their_call(deltas, calls):
    events = written(*deltas, finish="tool_calls")

    assert calls_of(events) == calls
    assert events[-2] == {"messageStop": {"stopReason": "tool_use"}}


def test_a_missing_id_is_made_once_and_each_call_has_its_own():
    events = written(
        piece(0, None, "f", "{"), piece(0, None, None, "}"), piece(1, None, "g", "{}"), finish="tool_calls"
    )

    ids = [e["contentBlockStart"]["start"]["toolUse"]["toolUseId"] for e in events if "contentBlockStart" in e]
    assert len(set(ids)) == len(ids) == 2


def test_every_block_is_started_and_stopped_once():
    events = written(said(reasoning_content="a"), said(content="b"), piece(0, "c1", "f", "{}"), said(content="c"))

    started = [e["contentBlockStart"]["contentBlockIndex"] for e in events if "contentBlockStart" in e]
    stopped = [e["contentBlockStop"]["contentBlockIndex"] for e in events if "contentBlockStop" in e]
    assert started == [0, 1, 2]
    assert sorted(stopped) == started


def test_text_around_a_tool_call_is_one_text():
    events = written(said(content="I "), piece(0, "c1", "f", "{}"), said(content="see"))

    assert blocks_of(events)[0] == [{"text": "I "}, {"text": "see"}]


def thinking(**block):
    return said(thinking_blocks=[{"type": "thinking", "thinking": "", **block}])


def test_each_thinking_block_keeps_its_own_signature():
    events = written(
        thinking(thinking="a"),
        thinking(signature="S1"),
        thinking(thinking="b"),
        thinking(signature="S"),
        thinking(signature="2"),
        said(thinking_blocks=[{"type": "redacted_thinking", "data": "AQ=="}]),
        thinking(thinking="c"),
        said(content="so"),
    )

    assert blocks_of(events) == [
        [{"reasoningContent": {"text": "a"}}, {"reasoningContent": {"signature": "S1"}}],
        [
            {"reasoningContent": {"text": "b"}},
            {"reasoningContent": {"signature": "S"}},
            {"reasoningContent": {"signature": "2"}},
        ],
        [{"reasoningContent": {"redactedContent": b"\x01"}}],
        [{"reasoningContent": {"text": "c"}}],
        [{"text": "so"}],
    ]


def test_thinking_that_is_said_twice_is_read_once():
    blocks = [{"type": "thinking", "thinking": "a"}]

    events = written(said(reasoning_content="a", thinking_blocks=blocks), said(content="so"))

    assert blocks_of(events)[0] == [{"reasoningContent": {"text": "a"}}]


def test_a_signature_of_thinking_that_is_not_shown_is_kept():
    assert blocks_of(written(thinking(signature="S1")))[0] == [{"reasoningContent": {"signature": "S1"}}]


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("length", "max_tokens"),
        ("content_filter", "content_filtered"),
        ("pause_for_reflection", "pause_for_reflection"),
    ],
)
def test_reasons_to_stop_are_mapped_and_unknown_ones_pass(finish, stop):
    assert written(finish=finish)[-2] == {"messageStop": {"stopReason": stop}}


def test_without_a_reason_to_stop_the_answer_is_incomplete():
    with pytest.raises(IncompleteStreamError, match="finish_reason"):
        written(said(content="half"), finish=None)


def test_a_refusal_is_text():
    assert blocks_of(written(said(content=None, refusal="I will not.")))[0] == [{"text": "I will not."}]


def test_content_in_parts_is_their_text():
    assert blocks_of(written(said(content=[{"type": "text", "text": "a"}, {"type": "odd"}])))[0] == [{"text": "a"}]


def test_content_that_is_no_text_is_malformed():
    with pytest.raises(MalformedStreamError, match="int"):
        written(said(content=5))


def test_null_in_every_place_is_nothing():
    events = written(None, said(content=None, tool_calls=None, thinking_blocks=None, reasoning_content=None))

    assert blocks_of(events) == []


def test_an_answer_cut_by_the_full_window_is_one_cut_at_the_token_limit():
    events = written(said(content="half"), finish="model_context_window_exceeded")

    assert events[-2] == {"messageStop": {"stopReason": "max_tokens"}}


def test_long_arguments_are_not_read_again_with_every_piece_that_says_the_name_again(monkeypatch):
    reads = []
    monkeypatch.setattr("ropewalk_litellm.calls.json.loads", reads.append)
    pieces = ['{"text": "', *["word "] * 500, '"}']

    events = written(*(piece(0, None, "write", text) for text in pieces), finish="tool_calls")

    assert len(calls_of(events)) == 1
    assert len(reads) < 5
