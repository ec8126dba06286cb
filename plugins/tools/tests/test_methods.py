from __future__ import annotations

import gc
import weakref

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk_tools import ToolContext, tool


class Greeter:
    kind = "Greeter"

    def __init__(self, word: str) -> None:
        self.word = word

    @tool
    def greet(self, name: str) -> str:
        """Greets.

        Args:
            name: whom
        """
        return f"{self.word} {name}"

    @tool
    async def greet_later(this, name: str) -> str:  # noqa: N805 - a method is one by its place
        return f"{this.word} {name}, later"

    @tool
    @classmethod
    def whose(cls, name: str) -> str:
        return f"{cls.kind} {name}"

    @classmethod
    @tool
    def whose_too(cls, name: str) -> str:
        return f"{cls.kind} {name}"

    @tool
    @staticmethod
    def plain(name: str) -> str:
        return f"plain {name}"

    @staticmethod
    @tool
    def plain_too(name: str) -> str:
        return f"plain {name}"

    @tool(context="ctx")
    def tenant(self, ctx: ToolContext) -> str:
        return f"{self.word} {ctx.invocation_state['tenant']}"


async def test_a_class_works_with_several_instances(said):
    hello, moin = Greeter("hello"), Greeter("moin")

    assert hello.greet("Ann") == "hello Ann"
    assert await said(hello.greet, name="Ann") == "hello Ann"
    assert await said(moin.greet, name="Ben") == "moin Ben"
    assert await said(moin.greet_later, name="Ben") == "moin Ben, later"
    assert await said(moin.tenant) == "moin acme"


def test_self_is_not_in_the_schema():
    for made in (Greeter("x").greet, Greeter("x").greet_later, Greeter.whose, Greeter.plain, Greeter.plain_too):
        assert list(made.tool_spec["inputSchema"]["json"]["properties"]) == ["name"]

    assert Greeter("x").tenant.tool_spec["inputSchema"]["json"]["properties"] == {}


class Shouter(Greeter):
    kind = "Shouter"


async def test_class_and_static_methods_are_tools_too(said):
    assert await said(Shouter.whose, name="Ann") == "Shouter Ann"
    assert await said(Shouter("x").whose, name="Ann") == "Shouter Ann"
    assert await said(Greeter.plain, name="Ann") == "plain Ann"
    assert await said(Greeter("x").plain, name="Ann") == "plain Ann"
    assert await said(Greeter("x").plain_too, name="Ann") == "plain Ann"


async def test_a_class_method_decorated_below_works_or_says_what_to_do(said):
    try:
        assert await said(Shouter.whose_too, name="Ann") == "Shouter Ann"
    except ToolDefinitionError as error:  # classmethod binds what it wraps up to Python 3.12
        assert "write @tool above it" in str(error)  # noqa: PT017


async def test_a_method_taken_from_the_class_says_what_to_do(invoke):
    with pytest.raises(ToolDefinitionError, match=r"tool 'greet' is a method without its object.*from an instance"):
        _ = Greeter.greet.tool_spec

    with pytest.raises(ToolDefinitionError, match="tool 'greet_later' is a method"):
        await invoke(Greeter.greet_later, name="Ann")


async def test_a_bound_method_can_be_decorated_afterwards(said):
    class Plain:
        def double(self, n: int) -> int:
            return 2 * n

    assert await said(tool(Plain().double), n=4) == "8"


@tool
def shared(x: int) -> int:
    return x


class Holder:
    borrowed = shared


async def test_a_tool_that_is_only_assigned_in_a_class_is_no_method(said):
    assert await said(Holder().borrowed, x=3) == "3"
    assert await said(shared, x=3) == "3"


def test_a_tool_of_a_method_does_not_keep_its_object_alive_in_a_cycle():
    greeter = Greeter("x")
    _ = greeter.greet.tool_spec
    gone = weakref.ref(greeter)
    gc.disable()
    try:
        del greeter
        assert gone() is None
    finally:
        gc.enable()
