from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import uuid
from collections import OrderedDict, UserDict, deque
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.json_values import clean_text, strict_json


def is_strict(value):
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return is_plain(value)


def is_plain(value):
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())

    return all(map(is_plain, value)) if type(value) is list else type(value) in (str, int, float, bool, type(None))


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Share(float, enum.Enum):
    HALF = 0.5


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Point:
    x: object
    y: object = None


@dataclasses.dataclass(eq=False)
class Node:
    children: dict


class Person(pydantic.BaseModel):
    name: str
    born: dt.date | None = None


class BrokenText:
    def __str__(self):
        raise RuntimeError("no text")


class BrokenMapping(dict):
    def items(self):
        raise RuntimeError("no items")


class BrokenList(list):
    def __iter__(self):
        raise RuntimeError("no items")


class BrokenDate(dt.date):
    def isoformat(self):
        raise RuntimeError("no text")


class BrokenProxy:
    @property
    def __class__(self):
        raise RuntimeError("not bound")


class DumpsText:
    def model_dump(self):
        return "text"


class DumpsNothing:
    def model_dump(self):
        return None


class DumpsNever:
    def model_dump(self):
        raise RuntimeError("cannot")


class DumpsItself:
    def model_dump(self):
        return {"again": self}


class LoudInt(int):
    def __int__(self):
        raise RuntimeError("no int")


class LoudFloat(float):
    def __float__(self):
        raise RuntimeError("no float")


@dataclasses.dataclass
class Secretive:
    @property
    def shown(self):
        raise RuntimeError("no")


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(max_size=8),
    st.binary(max_size=4).map(bytearray),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.complex_numbers(),
    st.sampled_from([Colour.RED, Level.HIGH, Share.HALF, Colour, object(), ..., len, Person(name="\ud800"), range(3)]),
    st.sampled_from([BrokenText(), BrokenMapping(a=1), BrokenList([1]), BrokenDate(2024, 2, 29)]),
    st.builds(BrokenProxy),
    st.sampled_from([DumpsText(), DumpsNothing(), DumpsNever(), DumpsItself(), LoudInt(3), LoudFloat(0.5)]),
    st.sampled_from([Secretive(), memoryview(b"ab")]),
    st.sampled_from([1, -1]).map(lambda sign: sign * 10**5000),
    st.just(1).map(lambda one: fractions.Fraction(one, 10**5000)),
)
hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=3)
    | st.dates()
    | st.uuids(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values = st.recursive(
    leaves | hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.sets(hashable, max_size=4),
        st.dictionaries(hashable, inner, max_size=4),
        st.builds(Point, inner, inner),
        st.builds(Pair, inner, inner),
        inner.map(lambda value: deque([value])),
        inner.map(lambda value: OrderedDict(a=value)),
        inner.map(lambda value: UserDict(a=value)),
        inner.map(lambda value: MappingProxyType({"a": value})),
        inner.map(lambda value: SimpleNamespace(a=value)),
    ),
    max_leaves=12,
)


@given(values)
def test_any_value_becomes_strict_json_and_stays_as_it_is_the_second_time(value):
    strict = strict_json(value)

    assert is_strict(strict)
    assert strict_json(strict) == strict


@given(st.text(st.characters()))
def test_any_text_becomes_valid_unicode_of_the_same_good_characters(text):
    clean = clean_text(text)

    clean.encode()
    assert clean_text(clean) == clean
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean is text


@pytest.mark.parametrize(
    ("value", "strict"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (2**70, 2**70),
        (True, True),
        (decimal.Decimal("1.10"), "1.10"),
        (decimal.Decimal("sNaN"), "sNaN"),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC), "2024-02-29T12:30:00+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x00\xff", "AP8="),
        ({3, 1, 2}, [1, 2, 3]),
        pytest.param(frozenset({"b", "a"}), ["a", "b"], id="a frozen set"),
        ((1, "x"), [1, "x"]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Share.HALF, 0.5),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Person(name="Ada", born=dt.date(1815, 12, 10)), {"name": "Ada", "born": "1815-12-10"}),
        ({None: "b", True: "c"}, {"null": "b", "true": "c"}),
        ({2: "a", 1.5: "b", b"\xff": "c", (1, 2): "d"}, {"2": "a", "1.5": "b", "/w==": "c", "[1, 2]": "d"}),
        ("bad \ud83d end", "bad \ufffd end"),
        ("\ud83d\ude42", "\U0001f642"),
        (BrokenText(), "<BrokenText>"),
        (DumpsText(), "text"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_each_type_has_one_rule(value, strict):
    assert strict_json(value) == strict


def test_an_integer_too_long_to_print_is_text():
    assert strict_json({"n": 10**5000})["n"] == hex(10**5000)


def test_a_value_that_holds_itself_is_written_once():
    items = [1]
    items.append(items)
    table = {"items": items}
    table["table"] = table
    node = Node({})
    node.children[node] = "me"
    point = Point(1)
    point.y = point

    assert strict_json(items) == [1, "<cycle>"]
    assert strict_json(table)["table"] == "<cycle>"
    assert is_strict(strict_json(node))
    assert strict_json(point) == {"x": 1, "y": "<cycle>"}


def test_the_same_object_twice_side_by_side_is_no_cycle():
    shared = [1]

    assert strict_json([shared, shared, Point(shared, shared)]) == [[1], [1], {"x": [1], "y": [1]}]


def test_nesting_without_end_is_cut():
    deep = []
    for _ in range(50_000):
        deep = [deep]

    assert is_strict(strict_json(deep))
    assert is_strict(strict_json(Pair(deep, 1)))


def test_the_callers_objects_are_not_written_to():
    value = {"a": [1, {"b": float("nan")}]}

    strict_json(value)["a"][1]["b"] = "changed"

    assert value["a"][1]["b"] != value["a"][1]["b"]
