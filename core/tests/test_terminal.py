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


@pytest.mark.parametrize(
    "text",
    [
        "日本\u3000語",
        "Ça\u00a0va\u202f?",
        "\U0001f468\u200d\U0001f469",
        "a\u200cb",
        "soft\u00adhyphen",
        "a\u200fb",
    ],
    ids=ascii,
)
def test_what_is_only_invisible_stays(text):
    """A space of another width and the joints of an emoji steer nothing."""
    assert harmless(text) == text


@pytest.mark.parametrize(
    "steering", ["\x00", "\x07", "\x0b", "\r", "\x1b", "\x7f", "\x9b", "\u202e", "\u2067", "\ud83d"], ids=ascii
)
def test_every_character_that_steers_is_taken_out(steering):
    assert harmless(f"a{steering}b") == "a\ufffdb"


def test_columns_are_as_wide_as_what_stands_in_them():
    assert table(("A", "LONG"), [("abc", "x"), ("", "longer")]) == ["A    LONG", "abc  x", "     longer"]


def test_a_head_may_stand_alone():
    assert table(("A", "B"), []) == ["A  B"]
