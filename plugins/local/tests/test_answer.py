from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk_local.answer import RawValue, ReplyDecoder, StringDecoder, Text, ToolInput, ToolStart


def cut(text, places):
    """The text in pieces, cut at the given places."""
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    start, pieces = 0, []
    for end in ends:
        pieces.append(text[start:end])
        start = end

    return pieces


def read(text, places, **options):
    decoder = ReplyDecoder(**options)
    pieces = [piece for part in cut(text, places) for piece in decoder.feed(part)]
    return decoder, pieces


def joined(pieces, kind):
    return "".join(piece.text for piece in pieces if isinstance(piece, kind))


places = st.lists(st.integers(0, 10_000), max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
layouts = st.tuples(st.sampled_from([None, 1, 4]), st.booleans())


def dumped(value, layout):
    indent, ascii_only = layout
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only)


@given(texts, layouts, places)
def test_any_answer_in_any_pieces_gives_its_text(text, layout, places):
    decoder, pieces = read(dumped({"answer": text}, layout), places)

    assert joined(pieces, Text) == text
    assert decoder.complete
    assert not decoder.called_tool


@given(texts.filter(bool), st.dictionaries(texts, values, max_size=4), layouts, places, st.booleans())
def test_any_call_in_any_pieces_gives_its_arguments(name, arguments, layout, places, arguments_first):
    call = {"tool": name, "arguments": arguments}
    if arguments_first:
        call = dict(reversed(call.items()))

    decoder, pieces = read(dumped(call, layout), places)

    assert [piece.name for piece in pieces if isinstance(piece, ToolStart)] == [name]
    assert json.loads(joined(pieces, ToolInput)) == arguments
    assert isinstance(pieces[0], ToolStart)
    assert decoder.called_tool
    assert decoder.complete


@given(values, layouts, places)
def test_a_raw_answer_is_passed_on_as_json(value, layout, places):
    decoder, pieces = read(dumped({"answer": value}, layout), places, raw_answer=True)

    assert json.loads(joined(pieces, Text)) == value
    assert decoder.complete


@given(st.dictionaries(texts, values, max_size=4), layouts, places)
def test_other_keys_are_read_over(others, layout, places):
    reply = {**others, "answer": "yes"}
    reply.pop("tool", None)
    reply.pop("arguments", None)

    _, pieces = read(dumped(reply, layout), places)

    assert joined(pieces, Text) == "yes"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\n", "\ufffd\n"),
        (r"\ud83dx", "\ufffdx"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\u00e9\/\b\f\t\r\\\"", 'é/\b\f\t\r\\"'),
        (r"\uZZZZ", "\ufffd"),
    ],
)
def test_escapes_cut_at_every_place_decode_alike(source, text):
    for place in range(len(source) + 1):
        decoder = StringDecoder()
        first, _ = decoder.feed(source[:place])
        second, _ = decoder.feed(source[place:] + '"')
        assert first + second == text
        assert decoder.closed


def test_text_comes_before_the_string_ends():
    decoder = ReplyDecoder()

    assert decoder.feed('{"answer": "Hel') == [Text("Hel")]
    assert decoder.feed("lo\\") == [Text("lo")]
    assert decoder.feed('n"') == [Text("\n")]
    assert not decoder.complete
    assert decoder.feed("}") == []
    assert decoder.complete


def test_arguments_come_as_they_are_written():
    decoder = ReplyDecoder()

    assert decoder.feed('{"tool": "add", "argum') == [ToolStart("add")]
    assert decoder.feed('ents": {"a": 1') == [ToolInput('{"a": 1')]
    assert decoder.feed("}}") == [ToolInput("}")]


@pytest.mark.parametrize("source", ["1", "-2.5e3", "true", "null", '"a}"', "[1, {}]", '{"a": "\\"}"}'])
@pytest.mark.parametrize("end", ["}", ", ", " }"])
def test_a_value_ends_where_it_ends(source, end):
    value, rest = RawValue().feed(source + end)

    assert (value, rest) == (source, end)


def test_a_reply_that_was_cut_off_gives_what_is_certain():
    decoder, pieces = read(r'{"answer": "It is \ud83d', [])

    assert joined(pieces, Text) == "It is "
    assert not decoder.complete
