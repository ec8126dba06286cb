"""Text for terminals and pipes."""

from __future__ import annotations

import io
import sys

import pytest

from ropewalk.kits.terminal import harmless
from ropewalk_cli.output import text_of_result, write


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b]0;title\x07", "\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}"),
        ("c1 \x9b31m", "c1 \N{REPLACEMENT CHARACTER}31m"),
        ("日本 é 😀", "日本 é 😀"),
    ],
)
def test_control_characters_do_not_reach_the_terminal(monkeypatch, text, shown):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    write(text)

    assert (terminal.getvalue(), harmless(text)) == (shown, shown)


def test_a_pipe_gets_the_text_as_it_is(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))

    write("\x1b[0m")

    assert raw.getvalue() == b"\x1b[0m"


def test_what_the_output_cannot_encode_becomes_a_question_mark(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    write("naïve")

    assert raw.getvalue() == b"na?ve"


def test_every_kind_of_result_has_a_text():
    content = [{"text": "a"}, {"json": {"b": 1}}, {"image": {}}, {}]

    assert text_of_result({"content": content}) == "a\n{'b': 1}\n<image>\n<nothing>"
    assert text_of_result({}) == ""
