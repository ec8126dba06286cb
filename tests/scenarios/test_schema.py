"""Schemas: constraints, models, and annotations that are only text (scenarios A16 and A17)."""

from __future__ import annotations

import importlib.util
import sys
from datetime import date
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from ropewalk import tool
from ropewalk.errors import ToolDefinitionError
from ropewalk_testing import use


class Person(BaseModel):
    name: str
    born: date


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


# -- A16 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def got():
    """What the tools of this test received."""
    return []


@pytest.fixture
def register(got):
    """A tool with every kind of parameter."""

    @tool
    def register(
        n: Annotated[int, Field(ge=1, le=9)] = 1,
        code: Annotated[str, Field(min_length=2, pattern="^[a-z]+$", description="A code")] = "ab",
        p: Person | None = None,
        pet: Cat | Dog | None = None,
        xs: list[Person] = [],  # noqa: B006 - it is never written to
    ) -> str:
        """Registers."""
        got.append((n, code, p, pet, xs))
        return "registered"

    return register


def test_limits_are_in_the_schema(register):
    """Scenario A16."""
    properties = register.tool_spec["inputSchema"]["json"]["properties"]

    assert (properties["n"]["minimum"], properties["n"]["maximum"], properties["n"]["default"]) == (1, 9, 1)
    assert (properties["code"]["minLength"], properties["code"]["pattern"]) == (2, "^[a-z]+$")
    assert properties["code"]["description"] == "A code"


ANN = {"name": "Ann", "born": "2000-02-29"}


def test_the_body_gets_real_instances(ask, make_agent, register, got):
    """Scenario A16."""
    turns = [
        [use("register", {"p": ANN, "pet": {"kind": "dog", "tricks": ["sit"]}, "xs": [ANN, ANN]})],
        [use("register", {"pet": {"kind": "cat", "lives": 9}})],
        "ok",
    ]
    agent, _ = make_agent(turns, tools=[register])

    ask(agent, "go")

    first, second = got
    assert first[2] == Person(name="Ann", born=date(2000, 2, 29))
    assert isinstance(first[3], Dog)
    assert [type(x) for x in first[4]] == [Person, Person]
    assert second[3] == Cat(lives=9)


BAD = {
    "below": ({"n": 0}, "n"),
    "above": ({"n": 10}, "n"),
    "pattern": ({"code": "A1"}, "code"),
    "date": ({"p": {"name": "Ann", "born": "yesterday"}}, "born"),
    "missing": ({"p": {"name": "Ann"}}, "born"),
    "tag": ({"pet": {"kind": "cow"}}, "pet"),
    "item": ({"xs": [ANN, {"name": "Bob", "born": 1.5}]}, "xs"),
    "no list": ({"xs": ANN}, "xs"),
}


@pytest.mark.parametrize(("arguments", "field"), BAD.values(), ids=BAD)
def test_bad_data_is_an_error_result_that_names_the_field(
    ask, make_agent, register, got, tool_results, result_text, arguments, field
):
    """Scenario A16."""
    agent, _ = make_agent([use("register", arguments), "ok"], tools=[register])

    ask(agent, "go")

    (result,) = tool_results(agent.messages)
    assert (result["status"], got) == ("error", [])
    assert field in result_text(result)


def test_every_bad_field_is_named_at_once(ask, make_agent, register, tool_results, result_text):
    """Scenario A16."""
    agent, _ = make_agent([use("register", {"n": 0, "code": "A1", "xs": 3}), "ok"], tools=[register])

    ask(agent, "go")

    said = result_text(tool_results(agent.messages)[0])
    assert all(field in said for field in ("code", "xs"))


# -- A17 ---------------------------------------------------------------------------------------------------------

SOURCE = '''
import enum
import functools
from typing import Annotated, Literal, Optional

from pydantic import BaseModel, Field
from ropewalk import ToolContext as Ctx, tool


class Cat(BaseModel):
    lives: int


class Dog(BaseModel):
    tricks: list[str]


class Color(enum.Enum):
    RED = "red"


def wrapper(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner


@tool(context=True)
def plain(
    pet: Cat | Dog,
    color: Color = Color.RED,
    kind: Literal["a", "b"] = "a",
    n: int | None = None,
    m: Optional[int] = None,
    limited: Annotated[int, Field(ge=1)] = 1,
    tool_context: Ctx = None,
) -> str:
    """Does.

    Args:
        pet: The pet.
    """
    return f"{type(pet).__name__} {tool_context is not None}"


@tool(context="ctx")
def aliased(x: int, ctx: Ctx) -> str:
    """Does."""
    return f"{x} {ctx is not None}"


@tool
def later(thing: "Later") -> str:
    """Does."""
    return type(thing).__name__


@tool
@wrapper
def wrapped(pet: Cat, n: int = 1) -> str:
    """Does."""
    return type(pet).__name__


def make():
    class Local(BaseModel):
        v: int

    @tool
    def local(item: Local) -> str:
        """Does."""
        return type(item).__name__

    return local


local = make()


class Later(BaseModel):
    w: int
'''

ARGUMENTS = {
    "plain": ({"pet": {"lives": 9}}, "Cat True"),
    "aliased": ({"x": 1}, "1 True"),
    "later": ({"thing": {"w": 1}}, "Later"),
    "wrapped": ({"pet": {"lives": 9}}, "Cat"),
    "local": ({"item": {"v": 1}}, "Local"),
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Imports source text as a module of its own."""

    def run(source, name):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return run


@pytest.mark.parametrize("name", ARGUMENTS)
def test_postponed_annotations_give_the_same_schema(load, name):
    """Scenario A17."""
    now = load(SOURCE, "a17_now")
    postponed = load("from __future__ import annotations\n" + SOURCE, "a17_postponed")

    assert getattr(postponed, name).tool_spec == getattr(now, name).tool_spec


@pytest.mark.parametrize("name", ARGUMENTS)
def test_tools_with_postponed_annotations_run(ask, make_agent, tool_results, load, name):
    """Scenario A17."""
    body = getattr(load("from __future__ import annotations\n" + SOURCE, "a17_run"), name)
    arguments, expected = ARGUMENTS[name]
    agent, _ = make_agent([use(name, arguments), "ok"], tools=[body])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": expected}]


@pytest.mark.parametrize("postponed", [True, False])
def test_the_context_is_never_in_the_schema(load, postponed):
    """Scenario A17."""
    module = load(("from __future__ import annotations\n" if postponed else "") + SOURCE, "a17_context")

    assert list(module.aliased.tool_spec["inputSchema"]["json"]["properties"]) == ["x"]
    assert "tool_context" not in module.plain.tool_spec["inputSchema"]["json"]["properties"]


@pytest.mark.parametrize("annotation", ["Nowhere", "list[Nowhere]", "Typing"])
def test_a_name_that_cannot_be_resolved_is_one_error_at_first_use_naming_the_parameter(load, make_agent, annotation):
    """Scenario A17."""
    source = f"""
from __future__ import annotations
from typing import TYPE_CHECKING
from ropewalk import tool

if TYPE_CHECKING:
    from decimal import Decimal as Typing


@tool
def lost(fine: int, odd_one: {annotation}) -> str:
    return "x"
"""
    module = load(source, "a17_lost")

    for _ in range(2):
        with pytest.raises(ToolDefinitionError, match="odd_one") as caught:
            make_agent(["never"], tools=[module.lost])[0]("go")

        assert "lost" in str(caught.value)
