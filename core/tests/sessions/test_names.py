from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.sessions.names import safe_name

HELD_EVERYWHERE = re.compile(r"[a-z0-9]+(?:[_-]+[a-z0-9]+)*")


@pytest.mark.parametrize("text", ["default", "user-7", "a_b", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "x" * 64])
def test_a_simple_id_names_itself(text):
    assert safe_name(text) == text


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Foo", "foo--"),
        ("../x", "x--"),
        ("a/b", "a-b--"),
        ("", "id--"),
        ("..", "id--"),
        ("con", "con--"),
        ("com1", "com1--"),
        ("nul.txt", "nul-txt--"),
        ("end.", "end--"),
        ("a--b", "a-b--"),
        ("x" * 65, "x" * 32 + "--"),
        ("\ud83d", "id--"),
    ],
)
def test_any_other_id_gets_a_readable_name_and_a_digest(text, begins):
    assert re.fullmatch(re.escape(begins) + "[0-9a-f]{32}", safe_name(text))


def test_both_forms_of_a_letter_are_two_ids():
    composed, apart = (unicodedata.normalize(form, "ÅNGSTRÖM") for form in ("NFC", "NFD"))
    assert safe_name(composed) != safe_name(apart)


def test_the_name_of_an_id_does_not_change():
    """Sessions are found by it."""
    assert safe_name("Foo/..") == "foo--3810c10cc9766b0b6a21f0f9d53eb9bb"


@given(st.text(), st.text())
def test_two_ids_never_share_a_name_and_every_system_holds_it(one, two):
    names = [safe_name(one), safe_name(two)]
    assert (names[0] == names[1]) == (one == two)
    for name in names:
        assert HELD_EVERYWHERE.fullmatch(name)
        assert len(name) <= 66


@given(st.text())
def test_the_name_of_a_name_is_another_one_unless_it_is_the_id(text):
    name = safe_name(text)
    assert (safe_name(name) == name) == (name == text)
