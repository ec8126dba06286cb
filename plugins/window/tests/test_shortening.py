"""Tool results made short."""

from __future__ import annotations

import pytest

from ropewalk_window.shortening import short_text, shortened


def result(*pieces):
    return {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "t", "status": "success", "content": list(pieces)}}],
    }


def pieces(message):
    return message["content"][0]["toolResult"]["content"]


@pytest.mark.parametrize("length", [0, 1, 400, 410], ids=str)
def test_a_text_that_would_gain_nothing_stays(length):
    text = "x" * length
    assert short_text(text) is text


def test_of_a_long_text_the_head_and_the_tail_stay():
    text = "h" * 200 + "m" * 1_000 + "t" * 200
    assert short_text(text) == "h" * 200 + "... [truncated: 1000 chars removed] ..." + "t" * 200


@pytest.mark.parametrize("length", [441, 500, 5_000, 200_000], ids=str)
def test_a_short_text_is_not_made_short_again(length):
    once = short_text("x" * length)
    assert len(once) < length
    assert short_text(once) is once


def test_json_counts_as_text():
    message = shortened(result({"json": {"rows": list(range(1_000))}}))
    assert pieces(message)[0]["text"].startswith('{"rows": [0, 1, 2')
    assert "chars removed" in pieces(message)[0]["text"]


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ({"image": {"format": "png", "source": {"bytes": b"1234"}}}, "[image removed: png, 4 bytes]"),
        ({"document": {"format": "pdf", "name": "a", "source": {}}}, "[document removed: pdf]"),
        ({"video": {"source": {"location": {}}}}, "[video removed: unknown format]"),
    ],
)
def test_of_media_a_placeholder_stays(piece, text):
    assert pieces(shortened(result(piece))) == [{"text": text}]


def test_what_is_short_stays_the_same_object():
    message = result({"text": "short"}, {"json": {"a": 1}}, {"cachePoint": {"type": "default"}})
    assert shortened(message) is message


def test_only_results_are_made_short_and_all_else_of_them_stays():
    message = {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "t", "status": "error", "content": [{"text": "y" * 999}, {"text": "z"}]}},
            {"text": "x" * 999},
        ],
        "metadata": {"custom": {"note": 1}},
    }
    before = repr(message)
    short = shortened(message)
    assert short["content"][0]["toolResult"]["status"] == "error"
    assert short["content"][0]["toolResult"]["content"][1] == {"text": "z"}
    assert short["content"][1] is message["content"][1]
    assert short["metadata"] == message["metadata"]
    assert repr(message) == before


def test_a_long_text_with_the_mark_of_a_short_one_in_it_is_made_short():
    text = "h" * 200 + "... [truncated: 7 chars removed] ..." + "t" * 5_000
    short = short_text(text)
    assert len(short) < 450
    assert short_text(short) is short


def test_of_very_many_short_pieces_the_first_and_the_last_stay():
    message = result(*[{"text": f"row {number}"} for number in range(10_000)])
    short = shortened(message)
    assert [piece["text"] for piece in pieces(short)] == [
        *[f"row {number}" for number in range(5)],
        "... [truncated: 9990 pieces removed] ...",
        *[f"row {number}" for number in range(9_995, 10_000)],
    ]
    assert shortened(short) is short
