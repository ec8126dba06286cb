from __future__ import annotations

import copy
import datetime as dt
import json
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Optional, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from ropewalk_structured import OutputModelError
from ropewalk_structured.target import target_of

T = TypeVar("T")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Node(BaseModel):
    """A tree."""

    word: str
    left: Optional[Node] = None  # noqa: UP045 - as users write it
    others: list[Node] = []


class Box(BaseModel, Generic[T]):
    content: T


class Cats(RootModel[list[Cat]]):
    pass


class Pet(RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]]):
    pass


class Never(BaseModel):
    n: int

    def __bool__(self):
        return False


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: dt.date
    tags: tuple[str, ...]


@dataclass
class Point:
    x: int
    y: int


CAT = {"kind": "cat", "lives": 9}
FORMS = [
    (Cat, CAT, Cat(kind="cat", lives=9)),
    (Node, {"word": "a", "left": {"word": "b"}}, Node(word="a", left=Node(word="b"))),
    (Box[Cat], {"content": CAT}, Box[Cat](content=Cat(kind="cat", lives=9))),
    (Cats, {"value": [CAT]}, Cats([Cat(kind="cat", lives=9)])),
    (Pet, {"value": {"kind": "dog", "barks": True}}, Pet(Dog(kind="dog", barks=True))),
    (Cat | Dog, {"value": {"kind": "dog", "barks": True}}, Dog(kind="dog", barks=True)),
    (list[Node], {"value": [{"word": "a", "others": [{"word": "b"}]}]}, [Node(word="a", others=[Node(word="b")])]),
    (Point, {"x": 1, "y": 2}, Point(1, 2)),
    (Never, {"n": 0}, Never(n=0)),
    (Strict, {"day": "2024-05-01", "tags": ["a"]}, Strict(day=dt.date(2024, 5, 1), tags=("a",))),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (Literal["yes", "no"], {"value": "no"}, "no"),
]


@pytest.mark.parametrize(("model", "answer", "filled"), FORMS, ids=range(len(FORMS)))
def test_every_form_is_filled_from_an_object(model, answer, filled):
    target = target_of(model)
    assert target.validate(answer) == filled


@pytest.mark.parametrize("model", [form[0] for form in FORMS], ids=range(len(FORMS)))
def test_every_schema_is_an_object_without_a_reference_at_its_top(model):
    target = target_of(model)

    assert target.schema["type"] == "object"
    assert "$ref" not in target.schema
    assert target.spec["inputSchema"]["json"] is target.schema
    for name in set(json.dumps(target.schema).split("#/$defs/")[1:]):
        assert name.partition('"')[0] in target.schema["$defs"]


def test_what_stands_under_value_may_also_come_bare():
    assert target_of(Cat | Dog).validate(CAT) == Cat(kind="cat", lives=9)


def test_the_description_begins_with_what_the_tool_is_for_and_ends_with_the_docstring():
    description = target_of(Node).spec["description"]

    assert description.startswith("IMPORTANT: This StructuredOutputTool should only be invoked as the last")
    assert description.endswith("A tree.")


def test_fields_have_no_title_that_repeats_their_name():
    assert "title" not in target_of(Cat).schema["properties"]["lives"]


def test_a_field_may_be_called_title():
    class Book(BaseModel):
        title: str

    assert target_of(Book).schema["properties"] == {"title": {"type": "string"}}


def test_lists_in_texts_are_taken_for_lists_and_the_answer_is_not_written_to():
    answer = {"content": json.dumps([json.dumps(["1", 2]), [3]])}
    before = copy.deepcopy(answer)

    assert target_of(Box[list[list[int]]]).validate(answer).content == [[1, 2], [3]]
    assert answer == before


def test_a_text_that_is_wanted_stays_a_text():
    assert target_of(Box[str]).validate({"content": "[1]"}).content == "[1]"


def test_what_does_not_fit_is_a_validation_error():
    with pytest.raises(ValidationError):
        target_of(Cat).validate({"kind": "cat", "lives": "[many]"})


@pytest.mark.parametrize("value", ["Cat", 3, object(), print, [Cat], Cat(kind="cat", lives=1), {"a": int}])
def test_what_is_no_output_model_is_refused(value):
    with pytest.raises(OutputModelError, match=r"structured_output_model=.* cannot be used: .*: give a pydantic model"):
        target_of(value)


def test_a_model_that_is_not_defined_yet_is_refused_and_taken_later():
    class Later(BaseModel):
        friend: Friend

    with pytest.raises(OutputModelError, match="not fully defined"):
        target_of(Later)

    class Friend(BaseModel):
        name: str

    Later.model_rebuild(_types_namespace={"Friend": Friend})
    assert target_of(Later).validate({"friend": {"name": "Ann"}}).friend == Friend(name="Ann")


def test_an_alias_that_cannot_be_hashed_is_taken():
    assert target_of(Annotated[list[int], Field(examples=[[1]])]).validate({"value": [1]}) == [1]


def test_the_schema_is_made_once():
    assert target_of(Cat) is target_of(Cat)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["word", "left", "others", "value", "x"]), inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(answer=st.dictionaries(st.sampled_from(["word", "left", "others", "value"]), json_values, max_size=4))
def test_any_answer_is_filled_or_refused_and_never_written_to(answer):
    before = copy.deepcopy(answer)
    for model in (Node, Cat | Dog, list[Node]):
        try:
            filled = target_of(model).validate(answer)
        except ValidationError:
            continue

        assert isinstance(filled, Node | Cat | Dog | list)

    assert json.dumps(answer) == json.dumps(before)
