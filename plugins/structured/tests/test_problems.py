from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from ropewalk_structured.problems import problem_text


class Street(BaseModel):
    number: int


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    age: int
    streets: list[Street] = []
    mood: Literal["good", "bad"] = "good"


def problem_of(model, value):
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)

    return problem_text(model.__name__, caught.value)


def test_each_field_has_one_line():
    assert problem_of(Person, {"age": "old", "streets": [{"number": "x"}], "mood": "so so"}).splitlines() == [
        "Validation failed for Person. Please fix the following errors:",
        "- Field 'name': Field required",
        "- Field 'age': Input should be a valid integer, unable to parse string as an integer (got \"old\")",
        "- Field 'streets.0.number': Input should be a valid integer, unable to parse string as an integer (got \"x\")",
        "- Field 'mood': Input should be 'good' or 'bad' (got \"so so\")",
    ]


def test_the_input_is_not_repeated():
    noise = "lorem ipsum " * 400
    text = problem_of(Person, {"name": {"first": noise}, "age": noise, "streets": [noise], "more": noise})

    assert len(text) < 1_000
    assert text.count("lorem ipsum") < 20
    assert "first" not in text


def test_a_long_message_of_a_validator_is_cut():
    class Picky(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def refuse(cls, value):
            raise ValueError(f"no {value}")

    assert len(problem_of(Picky, {"word": "long " * 1_000})) < 500


def test_a_problem_of_the_whole_object_has_no_field():
    class Span(BaseModel):
        first: int
        last: int

        @model_validator(mode="after")
        def in_order(self):
            if self.last < self.first:
                raise ValueError("last is before first")

            return self

    assert problem_of(Span, {"first": 2, "last": 1}).splitlines()[1:] == [
        "- The object: Value error, last is before first"
    ]


def test_many_fields_are_counted_not_listed():
    class Wide(BaseModel):
        numbers: list[int]

    lines = problem_of(Wide, {"numbers": ["x"] * 200}).splitlines()

    assert len(lines) == 22
    assert lines[-1] == "- and 180 more"


def test_problems_of_one_field_share_a_line():
    class Either(BaseModel):
        what: int | bool

    lines = problem_of(Either, {"what": "x"}).splitlines()

    assert [line.split(":")[0] for line in lines[1:]] == ["- Field 'what.int'", "- Field 'what.bool'"]
