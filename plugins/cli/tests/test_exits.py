"""Exit codes, and errors as a person reads them."""

from __future__ import annotations

import pydantic
import pytest

from ropewalk.errors import MissingPluginError
from ropewalk_cli.exits import exit_of, report


@pytest.mark.parametrize(
    ("stop_reason", "code"),
    [
        ("end_turn", 0),
        ("stop_sequence", 0),
        ("max_tokens", 3),
        ("limit_turns", 3),
        ("content_filtered", 3),
        ("interrupt", 3),
        ("a provider's own word", 3),
        ("cancelled", 130),
    ],
)
def test_each_stop_reason_has_an_exit_code(stop_reason, code):
    assert exit_of(stop_reason) == code


def test_an_error_of_ours_says_its_type_text_and_fix(capsys):
    report(MissingPluginError("Agent(limits=...)", "ropewalk-limits"))

    assert capsys.readouterr().err == (
        "Error: MissingPluginError: Agent(limits=...) needs the plugin ropewalk-limits: pip install ropewalk-limits\n"
    )


def test_a_foreign_error_says_where_it_came_from(capsys):
    error = ValueError("broken")
    error.__cause__ = KeyError("a")
    error.add_note("in the hook on_event of the plugin x")

    report(error)

    assert capsys.readouterr().err.splitlines() == [
        "Error: ValueError: broken",
        "  caused by KeyError: 'a'",
        "  in the hook on_event of the plugin x",
        "  --debug shows where it comes from",
    ]


def test_a_cause_that_the_text_already_tells_is_not_repeated(capsys):
    error = MissingPluginError("x: broken", "y")
    error.__cause__ = ValueError("broken")

    report(error)

    assert "caused by" not in capsys.readouterr().err


def test_a_group_of_errors_lists_them(capsys):
    report(ExceptionGroup("closing failed", [ValueError("one"), KeyError("two")]))

    assert capsys.readouterr().err.splitlines()[1:3] == ["  ValueError: one", "  KeyError: 'two'"]


def test_a_group_of_one_is_that_one(capsys):
    report(ExceptionGroup("1 of 2 plugins failed in on_close", [MissingPluginError("x", "y")]))

    assert capsys.readouterr().err.splitlines() == [
        "Error: MissingPluginError: x needs the plugin y: pip install y",
        "  1 of 2 plugins failed in on_close (1 sub-exception)",
    ]


def test_what_others_have_said_does_not_steer_the_terminal(capsys):
    error = ValueError("\x1b[2J")
    error.__cause__ = KeyError("\x1b[3J\nand more")
    error.add_note("\x1b[4J")

    report(error)

    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "cause",
    [FileNotFoundError(2, "No such file", "/x"), pydantic.TypeAdapter(int).validator],
    ids=["of the system", "of pydantic"],
)
def test_a_cause_that_is_told_in_other_words_is_not_repeated(capsys, cause):
    error = MissingPluginError("/x cannot be read (No such file)", "y")
    try:
        cause.validate_python("x") if not isinstance(cause, Exception) else None
    except ValueError as problem:
        cause = problem

    error.__cause__ = cause
    report(error)

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_of_a_long_cause_the_first_line_is_told(capsys):
    error = MissingPluginError("x", "y")
    error.__cause__ = ValueError("one\ntwo")

    report(error)

    assert capsys.readouterr().err.splitlines()[1:] == ["  caused by ValueError: one"]
