from __future__ import annotations

import datetime as dt
import enum
import json
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import Field

from ropewalk_tools import tool


class Person(pydantic.BaseModel):
    name: str
    born: dt.date
    title: str | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    bark: str


class Color(enum.Enum):
    RED = "red"


class Node(pydantic.BaseModel):
    value: int
    children: list[Node] = []


def properties_of(made: Any) -> dict[str, Any]:
    return made.tool_spec["inputSchema"]["json"]["properties"]


# -- instances arrive --------------------------------------------------------------------------------------------


@tool
def takes(
    n: Annotated[int, Field(ge=1, le=9)] = 1,
    p: Person | None = None,
    pet: Cat | Dog | None = None,
    xs: list[Person] = [],  # noqa: B006 - what users write
    day: dt.date | None = None,
    color: Color = Color.RED,
    tree: Node | None = None,
    by_name: dict[str, Person] | None = None,
) -> str:
    flat = [n, p, pet, *xs, day, color, tree, tree and tree.children[0], *(by_name or {}).values()]
    return " ".join(type(value).__name__ for value in flat if value is not None)


ANN = {"name": "Ann", "born": "2000-02-29"}


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ({}, "int Color"),
        ({"n": 9}, "int Color"),
        ({"p": ANN}, "int Person Color"),
        ({"pet": {"kind": "cat", "lives": 9}}, "int Cat Color"),
        ({"pet": {"kind": "dog", "bark": "wuff"}}, "int Dog Color"),
        ({"xs": [ANN, ANN]}, "int Person Person Color"),
        ({"day": "2024-02-29", "color": "red"}, "int date Color"),
        ({"tree": {"value": 1, "children": [{"value": 2}]}}, "int Color Node Node"),
        ({"by_name": {"a": ANN}}, "int Color Person"),
    ],
)
async def test_the_function_gets_the_types_that_it_declares(values, types, said):
    assert await said(takes, **values) == types


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"n": 0}, ["n"]),
        ({"n": 10}, ["n"]),
        ({"n": "many"}, ["n"]),
        ({"p": {"name": 3}}, ["p.name", "p.born"]),
        ({"p": "Ann"}, ["p"]),
        ({"pet": {"kind": "cow"}}, ["pet.Cat.kind", "pet.Dog.kind"]),
        ({"pet": {"kind": "cat"}}, ["pet.Cat.lives"]),
        ({"xs": [ANN, {"name": "B", "born": "soon"}]}, ["xs.1.born"]),
        ({"day": "2023-02-29"}, ["day"]),
        ({"color": "green"}, ["color"]),
        ({"n": 0, "day": "x", "xs": 1}, ["n", "day", "xs"]),
    ],
)
async def test_wrong_data_is_an_error_result_that_names_each_field(values, fields, failed):
    text = await failed(takes, **values)

    assert text.startswith("Error: the input does not fit the tool 'takes':\n")
    for field in fields:
        assert f"- {field}: " in text


async def test_wrong_input_never_reaches_the_function(failed):
    ran: list[int] = []

    @tool
    def record(n: int) -> None:
        ran.append(n)

    assert "- n: Field required" in await failed(record)
    assert "- n: Input should be a valid integer" in await failed(record, n="x")
    assert ran == []


async def test_keys_that_the_function_does_not_have_are_dropped(said):
    assert await said(takes, n=2, surprise=True) == "int Color"


async def test_a_default_that_can_change_is_new_for_each_call(said):
    @tool
    def collect(into: list[int] = []) -> int:  # noqa: B006 - what users write
        into.append(1)
        return len(into)

    assert [await said(collect), await said(collect)] == ["1", "1"]


async def test_a_default_that_json_cannot_carry_is_passed_as_it_is(said):
    missing: Any = object()

    @tool
    def ask(x: Any = missing) -> str:
        return str(x is missing)

    assert "default" not in properties_of(ask)["x"]
    assert await said(ask) == "True"


async def test_names_that_pydantic_keeps_for_itself_can_be_parameters(said, failed):
    @tool
    def odd(json: str, copy: int, _hidden: int, model_config: int, p_hidden: int, schema: str = "s") -> str:
        return f"{json} {copy} {_hidden} {model_config} {p_hidden} {schema}"

    assert list(properties_of(odd)) == ["json", "copy", "_hidden", "model_config", "p_hidden", "schema"]
    assert await said(odd, json="j", copy=1, _hidden=2, model_config=3, p_hidden=4) == "j 1 2 3 4 s"
    assert "- _hidden: " in await failed(odd, json="j", copy=1, _hidden="x", model_config=3, p_hidden=4)


async def test_an_alias_is_what_the_model_sees(said):
    @tool
    def between(start: Annotated[int, Field(alias="from")], to: int) -> int:
        return to - start

    assert list(properties_of(between)) == ["from", "to"]
    assert await said(between, **{"from": 1, "to": 5}) == "4"


async def test_a_validator_that_breaks_is_an_error_result(failed):
    def explode(value: int) -> int:
        raise ZeroDivisionError("boom")

    @tool
    def checked(n: Annotated[int, pydantic.AfterValidator(explode)]) -> None: ...

    assert await failed(checked, n=1) == "Error: ZeroDivisionError - boom"


# -- the schema --------------------------------------------------------------------------------------------------


def test_limits_defaults_and_choices_are_in_the_schema():
    @tool
    def shape(
        n: Annotated[int, Field(ge=1, le=9)],
        word: Annotated[str, Field(min_length=2, pattern="^a")] = "ab",
        level: Literal["low", "high"] = "low",
        k: int = Field(3, gt=0, description="of the Field"),
        by_field: Annotated[int, Field(default=4)] = 5,
    ) -> None: ...

    assert properties_of(shape) == {
        "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "Parameter n"},
        "word": {"type": "string", "minLength": 2, "pattern": "^a", "default": "ab", "description": "Parameter word"},
        "level": {"type": "string", "enum": ["low", "high"], "default": "low", "description": "Parameter level"},
        "k": {"type": "integer", "exclusiveMinimum": 0, "default": 3, "description": "of the Field"},
        "by_field": {"type": "integer", "default": 5, "description": "Parameter by_field"},
    }


async def test_the_default_of_an_annotated_field_counts(said):
    @tool
    def double(n: Annotated[int, Field(default=4)]) -> int:
        return 2 * n

    assert "required" not in double.tool_spec["inputSchema"]["json"]
    assert await said(double) == "8"


def test_a_description_comes_from_annotated_text_then_the_field_then_the_docstring():
    @tool
    def described(
        a: Annotated[int, "text", Field(description="field")],
        b: Annotated[int, Field(description="field")],
        c: Annotated[int, Field(ge=0)],
        d: int,
    ) -> None:
        """Describes.

        Args:
            a: doc a
            b: doc b
            c: doc c
        """

    assert [value["description"] for value in properties_of(described).values()] == [
        "text",
        "field",
        "doc c",
        "Parameter d",
    ]
    assert described.tool_spec["description"] == "Describes."


def test_what_may_be_left_out_is_not_told_to_be_nullable():
    @tool
    def maybe(a: int | None = None, b: int | str | None = None, c: Person | None = None, d: int | None = 3) -> None: ...

    assert properties_of(maybe) == {
        "a": {"type": "integer", "description": "Parameter a"},
        "b": {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "Parameter b"},
        "c": {"$ref": "#/$defs/Person", "description": "Parameter c"},
        "d": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3, "description": "Parameter d"},
    }


async def test_null_is_accepted_for_what_may_be_left_out(said):
    @tool
    def maybe(a: int | None = None) -> str:
        return repr(a)

    assert await said(maybe, a=None) == "None"


def test_a_required_parameter_that_may_be_null_says_so():
    @tool
    def must(a: int | None) -> None: ...

    assert properties_of(must)["a"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]


def test_titles_are_out_and_a_property_named_title_is_in():
    definitions = takes.tool_spec["inputSchema"]["json"]["$defs"]

    assert definitions["Person"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "born": {"type": "string", "format": "date"},
            "title": {"type": "string"},
        },
        "required": ["name", "born"],
    }
    assert definitions["Node"]["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Node"},
        "default": [],
    }


def test_a_default_is_shown_as_it_is():
    @tool
    def book(about: dict[str, Any] = {"title": "T", "properties": {"title": "x"}}) -> None: ...  # noqa: B006

    assert properties_of(book)["about"]["default"] == {"title": "T", "properties": {"title": "x"}}


def test_the_schema_is_json():
    assert json.loads(json.dumps(takes.tool_spec)) == takes.tool_spec


def test_bounds_and_defaults_that_no_json_has_are_left_out():
    @tool
    def limit(
        rate: Annotated[float, Field(ge=0, lt=float("inf"))] = float("inf"),
        share: float = float("nan"),
        marks: Annotated[tuple[float, ...], Field(max_length=3)] = (float("-inf"),),
    ) -> None: ...

    schema = limit.tool_spec["inputSchema"]["json"]

    assert json.loads(json.dumps(schema, allow_nan=False)) == schema
    assert schema["properties"]["rate"] == {"type": "number", "minimum": 0, "description": "Parameter rate"}
    assert "default" not in schema["properties"]["share"]


async def test_a_default_that_no_json_has_is_still_the_default(said):
    @tool
    def limit(rate: float = float("inf")) -> str:
        return f"{rate}"

    assert await said(limit) == "inf"


async def test_what_a_function_writes_to_its_arguments_does_not_show_in_the_input(invoke):
    @tool
    def change(plain: dict, anything: Any, items: list[Any]) -> None:
        plain["a"]["b"] = "changed"
        anything["a"].append("changed")
        items[0]["a"] = "changed"

    given = {"plain": {"a": {"b": 1}}, "anything": {"a": [1]}, "items": [{"a": 1}]}
    before = json.dumps(given)
    assert (await invoke(change, **given))["status"] == "success"

    assert json.dumps(given) == before


async def test_objects_that_a_direct_call_gives_arrive_as_they_are(invoke):
    arrived = []

    @tool
    def keep(items: Any) -> None:
        arrived.append(items)

    thing = object()
    given = [{"thing": thing}]
    given.append(given)
    assert (await invoke(keep, items=given))["status"] == "success"

    assert arrived[0] is not given
    assert arrived[0][0]["thing"] is thing
    assert arrived[0][1] is arrived[0]
