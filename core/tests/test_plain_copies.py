"""Copies that share nothing and do nothing of their own."""

from __future__ import annotations

import enum
import threading

from ropewalk.kits.calls.copies import plain_copy


class Liar(dict):
    def __eq__(self, other):
        return True

    __hash__ = None

    def __iter__(self):
        return iter(())

    def items(self):
        return [("a", "a lie")]

    def __deepcopy__(self, memo):
        return self


class Listed(list):
    def __iter__(self):
        return iter(["a lie"])


class Said(str):
    __slots__ = ()

    def __str__(self):
        return "a lie"

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Colour(str, enum.Enum):  # noqa: UP042 - what people write
    RED = "red"


def test_derived_values_become_plain_ones_with_what_they_really_hold():
    copied = plain_copy(Liar(a=Listed([Said("x"), (Said("y"), 1)]), b=Liar()))

    assert copied == {"a": ["x", ("y", 1)], "b": {}}
    assert [type(copied), type(copied["a"]), type(copied["a"][0]), type(copied["b"])] == [dict, list, str, dict]


def test_keys_are_plain_too():
    assert [type(key) for key in plain_copy({Said("k"): 1})] == [str]


def test_nothing_is_shared():
    original = {"a": [{"b": [1, {2}]}]}
    copied = plain_copy(original)
    original["a"][0]["b"][1].add(3)
    original["a"][0]["b"].append(4)

    assert copied == {"a": [{"b": [1, {2}]}]}


def test_what_refers_to_itself_does_so_in_the_copy():
    original = {"a": []}
    original["a"].append(original)
    copied = plain_copy(original)

    assert copied["a"][0] is copied
    assert copied is not original


def test_what_cannot_be_copied_is_taken_over():
    lock = threading.Lock()

    assert plain_copy({"lock": [lock]}) == {"lock": [lock]}


def test_members_of_an_enumeration_stay_what_they_are():
    assert plain_copy([Colour.RED])[0] is Colour.RED


def test_what_copies_itself_badly_is_taken_over():
    class Odd:
        def __deepcopy__(self, memo):
            return None

    odd = Odd()

    assert plain_copy([odd]) == [odd]


def test_a_list_that_holds_itself_does_so_in_the_copy():
    items = [1]
    items.append(items)

    copy = plain_copy(items)

    assert copy is not items
    assert copy[1] is copy
