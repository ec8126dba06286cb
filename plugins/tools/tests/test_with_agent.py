from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Agent, ToolContext, ToolDefinitionError, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, use


def agent_with(tools: list[Any], *turns: Any) -> Agent:
    return Agent(model=ScriptedModel(list(turns)), tools=tools, callback_handler=None)


def results_of(agent: Agent, index: int = 2) -> list[Any]:
    return [block["toolResult"] for block in agent.messages[index]["content"]]


def texts_of(agent: Agent) -> list[str]:
    return [result["content"][0]["text"] for result in results_of(agent)]


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


@tool
async def greet(name: str) -> str:
    return f"hello {name}"


def test_a_model_is_told_of_the_tools_and_gets_their_results_in_order():
    agent = agent_with([add, greet], [use("greet", {"name": "Ann"}), use("add", {"a": 1, "b": 2})], "done")

    assert str(agent("go")) == "done\n"
    assert [spec["name"] for spec in agent.model.requests[0].tool_specs] == ["add", "greet"]
    assert agent.model.requests[0].tool_specs[0] == add.tool_spec
    assert texts_of(agent) == ["hello Ann", "3"]
    assert_valid_history(agent.messages)


def test_bad_argument_types_are_an_error_result_and_the_model_goes_on():
    agent = agent_with([add], use("add", {"a": "one", "b": 2}), "sorry")

    assert str(agent("go")) == "sorry\n"
    assert results_of(agent)[0]["status"] == "error"
    assert "- a: Input should be a valid integer" in texts_of(agent)[0]


async def test_generators_stream_their_items_as_tool_stream_events():
    @tool
    async def later() -> AsyncIterator[Any]:
        yield {"part": 1}
        yield "end"

    @tool
    def threaded() -> Iterator[Any]:
        yield {"part": 2}
        yield "end too"

    agent = agent_with([later, threaded], use("later", {}), use("threaded", {}), "done")
    events = [event async for event in agent.stream_async("go")]

    streamed = [event["tool_stream_event"]["data"] for event in events if event.get("type") == "tool_stream"]
    assert streamed == [{"part": 1}, "end", {"part": 2}, "end too"]
    assert results_of(agent, 4)[0]["content"] == [{"text": "end too"}]


async def test_the_context_is_that_of_the_run():
    @tool(context=True)
    def look(tool_context: ToolContext) -> str:
        tool_context.invocation_state["seen"] = tool_context.tool_use["name"]
        tool_context.emit("looking")
        assert not tool_context.cancel_signal.is_set()
        return f"{tool_context.agent.name} {tool_context.idempotency_key.endswith(':T1')}"

    agent = agent_with([look], use("look", {}, id="T1"), "done")
    state: dict[str, Any] = {}
    events = [event async for event in agent.stream_async("go", invocation_state=state)]

    assert state["seen"] == "look"
    assert texts_of(agent) == [f"{agent.name} True"]
    streamed = [event["tool_stream_event"]["data"] for event in events if event.get("type") == "tool_stream"]
    assert streamed == ["looking"]


def test_methods_of_two_objects_are_two_tools():
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        @tool
        def count(self, by: int = 1) -> int:
            self.n += by
            return self.n

    first, second = Counter(), Counter()
    agent_with([first.count], use("count", {"by": 2}), "done")("go")
    agent_with([second.count], use("count", {}), use("count", {}), "done")("go")

    assert (first.n, second.n) == (2, 2)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_tool_that_leaves_the_program_is_obeyed_with_a_valid_history(error, threaded):
    @tool(name="leave")
    def in_a_thread() -> None:
        raise error

    @tool(name="leave")
    async def in_the_loop() -> None:
        raise error

    agent = agent_with([in_a_thread if threaded else in_the_loop], use("leave", {}), "never")
    with pytest.raises(type(error)):
        await agent.invoke_async("go")

    assert_valid_history(agent.messages)
    assert results_of(agent)[0]["status"] == "error"


async def test_a_tool_that_raises_cancelled_error_by_itself_is_an_error_result():
    @tool
    async def odd() -> None:
        raise asyncio.CancelledError

    agent = agent_with([odd, add], [use("odd", {}), use("add", {"a": 1, "b": 2})], "done")
    result = await agent.invoke_async("go")

    assert result.stop_reason == "end_turn"
    assert [result["status"] for result in results_of(agent)] == ["error", "success"]


async def test_cancelling_returns_while_a_sync_generator_is_stuck_and_stops_it_later():
    go_on, ended, stepped = threading.Event(), threading.Event(), []

    @tool
    def steps() -> Iterator[int]:
        try:
            agent.cancel()
            go_on.wait(10)
            for i in range(1000):
                stepped.append(i)
                yield i
        finally:
            ended.set()

    agent = agent_with([steps], use("steps", {}), "never")
    result = await agent.invoke_async("go")
    go_on.set()

    assert result.stop_reason == "cancelled"
    assert await asyncio.to_thread(ended.wait, 10)
    assert len(stepped) <= 1
    assert_valid_history(agent.messages)


def test_files_and_modules_and_nested_lists_are_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = "from ropewalk import tool\n\n@tool\ndef {name}() -> str:\n    return '{name}'\n"
    (tmp_path / "one.py").write_text(source.format(name="one"))
    (tmp_path / "mod_of_tools.py").write_text(source.format(name="two"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    agent = agent_with(["./one.py", ["mod_of_tools:two", (add,)]], [use("one", {}), use("two", {})], "done")
    agent("go")

    assert agent.tool_names == ["one", "two", "add"]
    assert texts_of(agent) == ["one", "two"]


def plain(n: int) -> int:
    return n


@pytest.mark.parametrize("entry", [plain, "./missing.py", "no_such_module:f", 3, "bare", [plain]])
def test_what_is_no_tool_is_an_error_where_the_agent_is_made(entry):
    with pytest.raises(ToolDefinitionError):
        agent_with([entry])


class Missing: ...


def test_a_type_that_json_cannot_carry_is_an_error_at_first_use_that_names_it():
    @tool
    def broken(thing: Missing) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"tool 'broken', parameter 'thing'"):
        agent_with([broken], "never")("go")
