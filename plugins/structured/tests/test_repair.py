from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from ropewalk_structured.repair import mended, objects_in


def errors_of(kind, value):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)

    return caught.value.errors(include_url=False, include_context=False)


def test_a_list_in_a_text_becomes_a_list():
    value = {"xs": "[1, 2]"}
    assert mended(value, errors_of(dict[str, list[int]], value)) == {"xs": [1, 2]}
    assert value == {"xs": "[1, 2]"}


def test_an_object_deep_inside_is_found():
    value = {"a": [{"b": 1}, '{"b": 2}']}
    assert mended(value, errors_of(dict[str, list[dict[str, int]]], value)) == {"a": [{"b": 1}, {"b": 2}]}


def test_the_names_of_union_members_are_no_steps():
    value = {"xs": "[1]"}
    assert mended(value, errors_of(dict[str, list[int] | dict[str, int]], value)) == {"xs": [1]}


def test_the_whole_value_may_be_a_text():
    assert mended("[1]", errors_of(list[int], "[1]")) == [1]


@pytest.mark.parametrize("text", ["[1, 2", "one, two", '"[1]"', "[" * 100_000, "", "12"])
def test_what_is_no_json_list_or_object_stays(text):
    assert mended({"xs": text}, errors_of(dict[str, list[int]], {"xs": text})) is None


def test_a_value_of_another_kind_stays():
    assert mended({"xs": 3}, errors_of(dict[str, list[int]], {"xs": 3})) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Here:\n```json\n{"a": {"b": 1}}\n```\nDone.', [{"a": {"b": 1}}]),
        ('Not {this} but {"a": 1} or {"a": 2}.', [{"a": 1}, {"a": 2}]),
        ('{"a": "}{"}', [{"a": "}{"}]),
        ('[{"a": 1}]', [{"a": 1}]),
        ("none", []),
        ('{"a": ', []),
        ("{" * 10_000, []),
        ('{"a":' * 5_000, []),
        ("", []),
    ],
    ids=range(10),
)
def test_objects_are_found_in_a_text(text, found):
    assert list(objects_in(text)) == found
