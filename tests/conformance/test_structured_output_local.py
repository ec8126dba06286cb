"""Structured output from a real model: a paragraph of text becomes a nested pydantic model."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from ropewalk import Agent

pytestmark = pytest.mark.model

PARAGRAPH = """\
Hartmann Ropes was founded in 1897 and still works from its old hall at 12 Harbour Lane in Bristol, postcode BS1 4QA.
It is run by Martha Hartmann, who is 58, together with her nephew Tom Reed, 31."""


class Address(BaseModel):
    street: str
    city: str
    postcode: str


class Person(BaseModel):
    name: str
    age: int = Field(ge=0, le=130)


class Company(BaseModel):
    """A company as the text describes it."""

    name: str
    founded: int = Field(description="Year of its foundation")
    address: Address
    staff: list[Person]


EXPECTED = Company(
    name="Hartmann Ropes",
    founded=1897,
    address=Address(street="12 Harbour Lane", city="Bristol", postcode="BS1 4QA"),
    staff=[Person(name="Martha Hartmann", age=58), Person(name="Tom Reed", age=31)],
)


@pytest.fixture(scope="module")
def agent():
    return Agent("local:qwen2.5-coder-1.5b", callback_handler=None)


def test_the_local_model_fills_a_nested_model_from_a_paragraph(agent):
    result = agent(PARAGRAPH, structured_output_model=Company)

    assert result.structured_output == EXPECTED
    assert agent.tool_names == []


def test_the_local_model_is_held_to_the_schema_beside_the_conversation(agent):
    before = list(agent.messages)

    assert agent.structured_output(Company, PARAGRAPH) == EXPECTED
    assert agent.messages == before
