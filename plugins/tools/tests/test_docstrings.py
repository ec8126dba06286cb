from __future__ import annotations

import pytest

from ropewalk_tools.docstrings import split_docstring

GOOGLE = """Adds numbers.

    A second paragraph: with a colon.

    Args:
        a (int, optional): the first
            of two
        b: a ratio: 1:2

            More on b.

    Returns:
        The sum.

    Note:
        Keep this.
    """

NUMPY = """Adds numbers.

    Parameters
    ----------
    a : int, optional
        the first
        of two
    b, c
        the others

    Returns
    -------
    int
        The sum.
    """

SPHINX = """Adds numbers.

    :param a: the first
        of two
    :type a: int
    :param int b: the second
    :returns: The sum.
    """


def test_a_google_section_gives_descriptions_and_leaves_the_rest_word_for_word():
    text, found = split_docstring(GOOGLE)

    assert found == {"a": "the first of two", "b": "a ratio: 1:2\n\nMore on b."}
    assert text == (
        "Adds numbers.\n\nA second paragraph: with a colon.\n\nReturns:\n    The sum.\n\nNote:\n    Keep this."
    )


def test_a_numpy_section_gives_descriptions_and_leaves_the_rest():
    text, found = split_docstring(NUMPY)

    assert found == {"a": "the first of two", "b": "the others", "c": "the others"}
    assert text == "Adds numbers.\n\nReturns\n-------\nint\n    The sum."


def test_sphinx_fields_give_descriptions_and_leave_the_rest():
    text, found = split_docstring(SPHINX)

    assert found == {"a": "the first of two", "b": "the second"}
    assert text == "Adds numbers.\n\n:returns: The sum."


@pytest.mark.parametrize("header", ["Args", "Arguments", "Parameters", "Params"])
def test_each_google_header_is_known(header):
    assert split_docstring(f"Adds.\n\n{header}:\n  a: the first\n") == ("Adds.", {"a": "the first"})


def test_a_docstring_of_arguments_only_leaves_no_text():
    assert split_docstring("Args:\n    a: the first\n") == ("", {"a": "the first"})


@pytest.mark.parametrize(
    "docstring",
    [
        "Adds.\n\nArgs:\n\nnothing indented here",
        "Shows the args: a and b",
        "Parameters\nare what it takes",
        "Weird {json: 1}\n\nplain\n    indented: code",
    ],
)
def test_prose_that_only_looks_like_a_section_stays(docstring):
    assert split_docstring(docstring) == (docstring, {})


def test_no_docstring_is_no_text():
    assert split_docstring(None) == ("", {})


def test_a_line_in_the_section_that_is_no_entry_belongs_to_the_entry_before():
    assert split_docstring("Adds.\n\nArgs:\n    a: the first\n    of two\n")[1] == {"a": "the first of two"}


def test_stars_are_no_part_of_a_name():
    assert split_docstring("Adds.\n\nArgs:\n    *items: all of them\n    **options: more\n")[1] == {
        "items": "all of them",
        "options": "more",
    }
