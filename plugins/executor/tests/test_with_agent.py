from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk import Agent, ConcurrentToolExecutor, PluginError, SequentialToolExecutor, hookimpl
from ropewalk.tools import ToolCall
from ropewalk.types import ToolResult
from ropewalk_testing import ScriptedModel, assert_valid_history, use

EXECUTORS = [SequentialToolExecutor(), ConcurrentToolExecutor(), ConcurrentToolExecutor(2)]


class Probe:
    """A tool that runs a body of the test."""

    def __init__(self, name: str, body: Callable[[ToolCall], Any]) -> None:
        self.tool_name = name
        self.tool_spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        self.body = body

    async def invoke(self, call: ToolCall) -> ToolResult:
        text = await self.body(call)
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def agent_with(tools: list[Any], *turns: Any, **parameters: Any) -> Agent:
    return Agent(model=ScriptedModel(list(turns)), tools=tools, callback_handler=None, **parameters)


def results_of(agent: Agent) -> list[Any]:
    return [block["toolResult"] for block in agent.messages[2]["content"]]


def three(name: str = "probe") -> list[Any]:
    return [use(name, {"i": i}) for i in range(3)]


async def test_an_agent_runs_the_tools_of_a_message_concurrently_unless_told_otherwise():
    meeting = asyncio.Barrier(3)

    async def meet(call: ToolCall) -> str:
        await meeting.wait()
        return str(call.tool_use["input"]["i"])

    agent = agent_with([Probe("probe", meet)], three(), "done")
    async with asyncio.timeout(10):
        await agent.invoke_async("go")

    assert [result["content"][0]["text"] for result in results_of(agent)] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("executor", "most"), [(SequentialToolExecutor(), 1), (ConcurrentToolExecutor(2), 2), (None, 3)], ids=repr
)
async def test_the_given_executor_is_the_one_that_runs_them(executor, most):
    running = highest = 0

    async def count(call: ToolCall) -> str:
        nonlocal running, highest
        running += 1
        highest = max(highest, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return "ok"

    agent = agent_with([Probe("probe", count)], three(), "done", tool_executor=executor)
    await agent.invoke_async("go")

    assert highest == most
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("value", ["sequential", 3, object()])
def test_what_is_no_executor_is_refused_where_the_agent_is_made(value):
    with pytest.raises(TypeError, match=r"tool_executor=.* is no executor: give ConcurrentToolExecutor"):
        agent_with([], tool_executor=value)


def test_the_bound_can_be_an_option():
    agent = agent_with([], plugins=[("executor", {"max_concurrency": 3})])

    assert [each.max_concurrency for each in agent.hooks.plugins if each.name == "executor"] == [3]
    with pytest.raises(PluginError, match=r"plugin 'executor' are wrong: max_concurrency"):
        agent_with([], plugins=[("executor", {"max_concurrency": 0})])


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
async def test_cancelling_answers_every_call_and_leaves_no_task(executor):
    began = asyncio.Event()

    async def hang(call: ToolCall) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent = agent_with([Probe("probe", hang)], three(), "never", tool_executor=executor)
    running = asyncio.create_task(agent.invoke_async("go"))
    await began.wait()
    agent.cancel()
    result = await running

    assert result.stop_reason == "cancelled"
    assert [each["status"] for each in results_of(agent)] == ["error"] * 3
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("tool ")] == []
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, ZeroDivisionError])
async def test_a_call_that_raises_leaves_no_call_unanswered(error):
    async def raises(call: ToolCall) -> str:
        if call.tool_use["input"]["i"] == 1:
            raise error("stop")

        await asyncio.sleep(0)
        return "ok"

    agent = agent_with([Probe("probe", raises)], three(), "done")
    if issubclass(error, SystemExit | KeyboardInterrupt):
        with pytest.raises(error):
            await agent.invoke_async("go")
    else:
        await agent.invoke_async("go")

    assert [each["toolUseId"] for each in results_of(agent)] == [
        block["toolUse"]["toolUseId"] for block in agent.messages[1]["content"]
    ]
    assert results_of(agent)[1]["status"] == "error"
    assert_valid_history(agent.messages)


async def test_a_run_whose_task_is_cancelled_ends_its_calls():
    began, ended = asyncio.Event(), []

    async def hang(call: ToolCall) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.tool_use["input"]["i"])

        return "never"

    agent = agent_with([Probe("probe", hang)], three(), "never")
    running = asyncio.create_task(agent.invoke_async("go"))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert ended == [0, 1, 2]
    assert_valid_history(agent.messages)


# -- interrupts ----------------------------------------------------------------------------------------------------


def answers(*pairs: Any) -> list[Any]:
    return [{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in pairs]


def asking(started: list[Any], ended: list[Any]) -> Probe:
    """A tool of whose calls 0 and 2 ask."""

    async def body(call: ToolCall) -> str:
        place = call.tool_use["input"]["i"]
        started.append(place)
        await asyncio.sleep(0)
        answer = None if place == 1 else call.interrupt("go on", place)
        ended.append(place)
        return f"{place}: {answer}"

    return Probe("probe", body)


@pytest.mark.parametrize("executor", [None, ConcurrentToolExecutor(), ConcurrentToolExecutor(3)], ids=repr)
async def test_concurrent_calls_ask_together_and_the_others_come_to_their_end(executor):
    started: list[Any] = []
    ended: list[Any] = []
    parameters = {} if executor is None else {"tool_executor": executor}
    agent = agent_with([asking(started, ended)], three(), "done", **parameters)

    result = await agent.invoke_async("go")

    assert sorted(each.reason for each in result.interrupts or ()) == [0, 2]
    assert (sorted(started), ended) == ([0, 1, 2], [1])
    questions = {each.reason: each for each in result.interrupts or ()}

    result = await agent.invoke_async(answers((questions[2], "c")))
    assert [each.reason for each in result.interrupts or ()] == [0]
    result = await agent.invoke_async(answers((questions[0], "a")))

    assert (str(result), ended) == ("done\n", [1, 2, 0])
    assert [each["content"][0]["text"] for each in results_of(agent)] == ["0: a", "1: None", "2: c"]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("executor", [SequentialToolExecutor(), ConcurrentToolExecutor(1)], ids=repr)
async def test_calls_one_after_the_other_stop_at_the_first_question(executor):
    started: list[Any] = []
    ended: list[Any] = []
    agent = agent_with([asking(started, ended)], three(), "done", tool_executor=executor)

    (first,) = (await agent.invoke_async("go")).interrupts or ()
    assert (first.reason, started, ended) == (0, [0], [])
    (second,) = (await agent.invoke_async(answers((first, "a")))).interrupts or ()
    assert (second.reason, started, ended) == (2, [0, 0, 1, 2], [0, 1])
    result = await agent.invoke_async(answers((second, "c")))

    assert (str(result), started, ended) == ("done\n", [0, 0, 1, 2, 2], [0, 1, 2])
    assert [each["content"][0]["text"] for each in results_of(agent)] == ["0: a", "1: None", "2: c"]


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
async def test_an_error_of_a_hook_beside_a_question_ends_the_run(executor):
    """The error is the caller's business at once; the question is not asked."""

    class Guard:
        name = "guard"

        @hookimpl
        async def around_tool_call(self, call: ToolCall, call_next: Callable[[ToolCall], Any]) -> Any:
            if call.tool_use["input"]["i"] == 1:
                raise LookupError("no")

            call.interrupt("go on")
            return await call_next(call)

    agent = agent_with([asking([], [])], three()[1:] + three()[:1], "done", tool_executor=executor, plugins=[Guard()])

    with pytest.raises(LookupError):
        await agent.invoke_async("go")

    assert agent.suspension is None
    assert_valid_history(agent.messages)
