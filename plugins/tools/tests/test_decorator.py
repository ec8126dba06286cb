from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk.tools import Tool, effect_of, on_unknown_of
from ropewalk_tools import FunctionTool, tool


@tool
def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


def test_the_decorated_function_is_still_the_function():
    assert add(1, b=2) == 3
    assert add.__name__ == "add"
    assert inspect.signature(add) == inspect.signature(add.__wrapped__)


def test_the_tool_has_what_the_kernel_asks_for():
    assert isinstance(add, Tool)
    assert (add.tool_name, add.tool_type, add.effect, add.on_unknown) == ("add", "function", "irreversible", None)


def test_the_spec_says_name_description_and_schema():
    assert add.tool_spec == {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "json": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "the first"},
                    "b": {"type": "integer", "description": "the second", "default": 2},
                },
                "required": ["a"],
            }
        },
    }


async def test_the_tool_answers_a_call(invoke):
    assert await invoke(add, a=1, b=4) == {"toolUseId": "T1", "status": "success", "content": [{"text": "5"}]}


def test_name_and_description_can_be_given():
    @tool(name="sum-up", description="Sums up.")
    def add(a: int) -> int:
        """Not this."""
        return a

    assert add.tool_name == "sum-up"
    assert (add.tool_spec["name"], add.tool_spec["description"]) == ("sum-up", "Sums up.")


def test_a_tool_without_a_docstring_is_described_by_its_name():
    @tool
    def bare() -> None: ...

    assert bare.tool_spec == {
        "name": "bare",
        "description": "bare",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "description": "mine"}}}


@pytest.mark.parametrize("given", [SCHEMA, {"json": SCHEMA}])
async def test_a_given_schema_is_shown_and_the_signature_checks(given, failed):
    @tool(inputSchema=given)
    def double(a: int) -> int:
        return 2 * a

    assert double.tool_spec["inputSchema"] == {"json": SCHEMA}
    assert "- a:" in await failed(double, a="x")


def test_a_given_schema_is_copied_and_made_json():
    given = {"type": "object", "required": ("a",), "properties": {"a": {"type": "number", "maximum": float("inf")}}}

    @tool(inputSchema=given)
    def double(a: float) -> float:
        return 2 * a

    given["properties"]["b"] = {}

    assert double.tool_spec["inputSchema"]["json"] == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "number"}},
    }


@pytest.mark.parametrize("given", [{"type": "string"}, [], "x", {"json": 1}, {"type": "object", "properties": [1]}])
def test_a_schema_of_no_object_is_refused(given):
    with pytest.raises(ToolDefinitionError, match="tool 'double': inputSchema is no JSON schema"):

        @tool(inputSchema=given)
        def double(a: int) -> int:
            return a


@pytest.mark.parametrize("name", ["", "has space", "a.b", "名前", "a$b", "x" * 65, "x\n", 3])
def test_a_name_that_providers_refuse_is_refused_at_once(name):
    with pytest.raises(ToolDefinitionError, match=r"1 to 64 of a-z A-Z 0-9 _ -.*@tool\(name="):
        tool(name=name)(lambda: 1)


def test_a_lambda_needs_a_name():
    with pytest.raises(ToolDefinitionError, match="<lambda>"):
        tool(lambda a: a)

    assert tool(name="same")(lambda a: a).tool_name == "same"


@pytest.mark.parametrize("effect", ["pure", "idempotent", "irreversible"])
def test_the_effect_is_kept(effect):
    made = tool(effect=effect, on_unknown="ask")(add.__wrapped__)

    assert effect_of(made) == effect
    assert on_unknown_of(made) == "ask"


@pytest.mark.parametrize(
    ("given", "text"), [({"effect": "none"}, "effect is 'none'"), ({"on_unknown": "x"}, "on_unknown")]
)
def test_an_unknown_effect_is_refused(given, text):
    with pytest.raises(ToolDefinitionError, match=f"tool 'add': {text}.*give one of"):
        tool(**given)(add.__wrapped__)


@pytest.mark.parametrize("thing", [int, 3, "text", None.__class__])
def test_what_is_no_function_is_refused(thing):
    with pytest.raises(ToolDefinitionError, match="@tool decorates functions"):
        tool()(thing)


def test_a_function_without_a_signature_is_refused():
    def bits() -> None: ...

    bits.__signature__ = "none"  # type: ignore[attr-defined]
    with pytest.raises(ToolDefinitionError, match="tool 'bits': the signature cannot be read"):
        tool(bits)


def test_a_tool_of_a_tool_is_another_tool_of_its_function():
    other = tool(name="plus")(add)

    assert (other.tool_name, other(1, 1), add.tool_name) == ("plus", 2, "add")


async def test_what_a_partial_fills_in_is_not_shown_to_the_model_and_cannot_be_changed(said):
    def fetch(path: str, token: str) -> str:
        return f"{path} with {token}"

    fetch_it = tool(name="fetch")(functools.partial(fetch, token="secret"))

    assert list(fetch_it.tool_spec["inputSchema"]["json"]["properties"]) == ["path"]
    assert await said(fetch_it, path="/x", token="other") == "/x with secret"


async def test_a_value_error_is_for_the_model_and_others_name_their_type(failed):
    @tool
    def fails(kind: str) -> None:
        raise {"value": ValueError("no such city"), "key": KeyError("k"), "group": ExceptionGroup("g", [OSError("o")])}[
            kind
        ]

    assert await failed(fails, kind="value") == "Error: no such city"
    assert await failed(fails, kind="key") == "Error: KeyError - 'k'"
    assert await failed(fails, kind="group") == "Error: ExceptionGroup - g (1 sub-exception)"


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("threaded", [False, True])
async def test_what_is_no_exception_goes_to_the_kernel(error, threaded, invoke):
    @tool
    def in_a_thread() -> None:
        raise error

    @tool
    async def in_the_loop() -> None:
        raise error

    with pytest.raises(error):
        await invoke(in_a_thread if threaded else in_the_loop)


async def test_a_sync_tool_that_raises_stop_iteration_gets_an_error_result(failed):
    @tool
    def first() -> Any:
        return next(iter(()))

    assert "StopIteration" in await failed(first)


def test_the_tool_is_made_without_pydantic_and_completed_at_first_use(monkeypatch):
    made: list[str] = []
    monkeypatch.setattr("pydantic.create_model", lambda name, **_: made.append(name))
    tool(add.__wrapped__)

    assert made == []


async def test_a_tool_can_be_called_and_invoked_with_positional_only_parameters(said):
    @tool
    def minus(a: int, /, b: int, *, c: int = 0) -> int:
        return a - b - c

    assert minus(5, 3) == 2
    assert await said(minus, a=5, b=3, c=1) == "1"


def test_the_tool_is_generic_and_named_in_its_repr():
    assert isinstance(add, FunctionTool)
    assert repr(add).startswith("<tool 'add': <function add")
