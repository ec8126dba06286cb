"""Text for terminals, in lines and columns."""

from __future__ import annotations

import pytest

from ropewalk.kits.terminal import first_line, harmless, table


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("\n  one  \ntwo", "one"), ("x" * 300, "x" * 197 + "..."), ("\x1b[0m", "\N{REPLACEMENT CHARACTER}[0m")],
)
def test_the_first_line_with_something_in_it_is_shown(text, line):
    assert first_line(text) == line


def test_a_first_line_can_be_shown_whole():
    assert first_line("x" * 300, most=None) == "x" * 300


def test_what_steers_a_terminal_is_taken_out():
    assert harmless("\x1b[2Jhi\r\n\tthere\u202e") == "\ufffd[2Jhi\ufffd\n\tthere\ufffd"


def test_columns_are_as_wide_as_what_stands_in_them():
    assert table(("A", "LONG"), [("abc", "x"), ("", "longer")]) == ["A    LONG", "abc  x", "     longer"]


def test_a_head_may_stand_alone():
    assert table(("A", "B"), []) == ["A  B"]
