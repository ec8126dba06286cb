from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from ropewalk import Agent, ToolDefinitionError, ToolProvider, tool
from ropewalk_testing import ScriptedModel, use
from ropewalk_tools.providers import is_provider


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Shelf(ToolProvider):
    """Brings tools, and keeps a log of what it was asked."""

    def __init__(self, *tools: Any, error: Exception | None = None) -> None:
        self.tools = tools
        self.error = error
        self.log: list[str] = []
        self.consumers: list[Any] = []

    async def load_tools(self, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        self.log.append("load")
        if self.error:
            raise self.error

        return self.tools

    def add_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
        self.log.append("add")
        self.consumers.append(consumer_id)

    def remove_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
        self.log.append("remove")
        self.consumers.remove(consumer_id)


class PlainShelf:
    """As `Shelf`, without the base class, loading synchronously and cleaning up asynchronously."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def load_tools(self) -> list[Any]:
        self.log.append("load")
        return [add]

    def add_consumer(self, consumer_id: Any) -> None:
        self.log.append("add")

    async def remove_consumer(self, consumer_id: Any) -> None:
        self.log.append("remove")


def agent_with(*tools: Any, turns: Any = ()) -> Agent:
    return Agent(model=ScriptedModel(list(turns)), tools=list(tools), callback_handler=None)


def test_a_provider_is_loaded_once_and_left_when_the_agent_is_closed():
    shelf = Shelf(add)
    agent = agent_with(shelf, turns=[use("add", {"a": 1, "b": 2}), "3", "again"])

    assert agent.tool_names == ["add"]
    agent("go")
    agent("go on")
    assert shelf.log == ["add", "load"]

    agent.close()
    agent.close()
    assert shelf.log == ["add", "load", "remove"]


async def test_it_is_loaded_inside_a_running_event_loop_too():
    shelf = Shelf(add)
    async with agent_with(shelf) as agent:
        assert agent.tool_names == ["add"]

    assert shelf.consumers == []


async def test_a_provider_without_the_base_class_will_do():
    shelf = PlainShelf()
    agent = agent_with(shelf)
    await agent.aclose()

    assert shelf.log == ["add", "load", "remove"]


def test_two_agents_are_two_consumers():
    shelf = Shelf(add)
    first, second = agent_with(shelf), agent_with(shelf)

    assert len(set(shelf.consumers)) == 2
    first.close()
    assert len(shelf.consumers) == 1
    second.close()
    assert shelf.consumers == []


def test_a_provider_that_stands_twice_in_the_list_is_loaded_once():
    shelf = Shelf(add)
    agent = agent_with([shelf, [shelf]])

    assert (agent.tool_names, shelf.log) == (["add"], ["add", "load"])


def test_what_it_brings_may_be_any_entry_of_tools():
    assert agent_with(Shelf([add], [[tool(name="sub")(lambda: 1)]])).tool_names == ["add", "sub"]


def test_a_copy_of_the_agent_is_no_consumer():
    shelf = Shelf(add)
    agent = agent_with(shelf)
    copy = agent.clone()
    copy.close()

    assert (copy.tool_names, shelf.log) == (["add"], ["add", "load"])
    agent.close()
    assert shelf.consumers == []


def test_a_provider_that_cannot_load_is_an_error_and_is_left():
    shelf = Shelf(error=ConnectionError("nobody there"))

    with pytest.raises(ToolDefinitionError, match=r"Shelf could not load its tools: ConnectionError: nobody there"):
        agent_with(shelf)

    assert shelf.log == ["add", "load", "remove"]


@pytest.mark.parametrize("brought", [3, [3], None])
def test_a_provider_that_brings_no_tools_is_an_error(brought):
    shelf = Shelf()
    shelf.tools = brought if brought is None else [brought]

    with pytest.raises(ToolDefinitionError, match="Shelf could not load its tools"):
        agent_with(shelf)

    assert shelf.consumers == []


def test_a_provider_that_takes_no_consumer_is_an_error():
    class Closed(Shelf):
        def add_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
            raise RuntimeError("closed")

    shelf = Closed(add)
    with pytest.raises(ToolDefinitionError, match="Closed takes no consumer: RuntimeError: closed"):
        agent_with(shelf)

    assert shelf.log == []


def test_an_agent_that_is_gone_has_left_its_providers():
    shelf = Shelf(add)
    agent = agent_with(shelf)
    assert len(shelf.consumers) == 1

    del agent
    gc.collect()
    assert shelf.consumers == []


def test_an_agent_that_could_not_be_built_has_left_its_providers():
    shelf = Shelf(add)
    with pytest.raises(ToolDefinitionError, match="'add' is taken"):
        agent_with(shelf, Shelf(tool(name="add")(lambda: 1)))

    gc.collect()
    assert shelf.consumers == []


def test_an_asynchronous_cleanup_of_an_agent_that_is_gone_is_reported(caplog):
    shelf = PlainShelf()
    agent = agent_with(shelf)
    del agent
    gc.collect()

    assert "PlainShelf was not told to clean up, which it does asynchronously: close the agent" in caplog.text


def test_a_cleanup_that_fails_does_not_keep_the_others_from_theirs():
    class Broken(Shelf):
        def remove_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
            raise OSError("no")

    shelf = Shelf(add)
    agent = agent_with(Broken(), shelf)

    with pytest.raises(ExceptionGroup) as caught:
        agent.close()

    assert caught.group_contains(OSError, match="no")
    assert shelf.consumers == []


def test_a_failing_cleanup_of_an_agent_that_is_gone_is_logged(caplog):
    class Broken(Shelf):
        def remove_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
            raise OSError("no")

    agent = agent_with(Broken())
    del agent
    gc.collect()

    assert "tool provider Broken failed to clean up" in caplog.text


def test_the_class_of_a_provider_is_none():
    assert not is_provider(Shelf)
    assert not is_provider(object())
    assert is_provider(Shelf())
