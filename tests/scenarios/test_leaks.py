"""Per-run growth and reference cycles (scenario A29)."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
import weakref
from itertools import pairwise

import pytest

from ropewalk import Agent, hookimpl, tool
from ropewalk.errors import InvalidPromptError, ModelError
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk_testing import ScriptedModel, turn, use


@tool
async def ping() -> str:
    """Pings."""
    return "pong"


class KeepFour:
    """A window of four messages."""

    name = "keep-four"

    @hookimpl
    async def manage_context(self, request, reason):
        surplus = len(request.messages) - 4
        if reason != "after_invocation" or surplus <= 0:
            return None

        return [HistoryEdit(request.ids[0], request.ids[surplus - 1], (), "four are enough")]


async def test_a_thousand_runs_cost_no_lasting_memory():
    """Scenario A29."""
    model = ScriptedModel(
        lambda request: "ok" if "toolResult" in request.messages[-1]["content"][0] else use("ping", {}), record=False
    )
    agent = Agent(model=model, tools=[ping], plugins=[KeepFour()], callback_handler=None)

    async def runs(count):
        for _ in range(count):
            await agent.invoke_async("go")

        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    await runs(200)
    tracemalloc.start()
    try:
        marks = [await runs(count) for count in (100, 500, 500, 500)]
        grown = min(after - before for before, after in pairwise(marks))  # other threads of the process allocate too
    finally:
        tracemalloc.stop()

    assert len(agent.messages) == 4
    assert grown < 500 * 20, f"{grown / 500:.0f} bytes stay for each run"


def test_a_thousand_blocking_runs_leave_no_threads_or_objects_behind():
    """Scenario A29."""
    agent = Agent(model=ScriptedModel(lambda request: "ok", record=False), plugins=[KeepFour()], callback_handler=None)
    for _ in range(20):
        agent("go")

    def after(count):
        for _ in range(count):
            agent("go")

        gc.collect()
        return len(gc.get_objects())

    threads = threading.active_count()
    marks = [after(count) for count in (0, 350, 350, 350)]

    assert threading.active_count() <= threads
    grown = min(later - before for before, later in pairwise(marks))  # other threads of the process make objects too
    assert grown < 175, f"{grown} objects stay of 350 runs"


async def plain(agent):
    await agent.invoke_async("go")


async def in_a_stream(agent):
    async for _ in agent.stream_async("go"):
        pass


async def left_early(agent):
    stream = agent.stream_async("go")
    async for event in stream:
        if "tools_starting" in event:
            break

    await stream.aclose()


async def called_in_a_thread(agent):
    await asyncio.to_thread(agent, "go")


async def failed(agent):
    agent.model = ScriptedModel(lambda request: ModelError("down"))  # a new one, so that the model keeps no traceback
    try:
        await agent.invoke_async("go")
    except ModelError:
        return

    pytest.fail("it did not fail")


async def cancelled(agent):
    async for event in agent.stream_async("go"):
        if "tools_starting" in event:
            agent.cancel()


async def cancelled_from_outside(agent):
    agent.model = ScriptedModel([turn(stall=60)])
    task = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.to_thread(agent.model.stalled.wait, 10)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return

    pytest.fail("it was not cancelled")


async def refused(agent):
    try:
        await agent.invoke_async(42)
    except InvalidPromptError:
        return

    pytest.fail("it was not refused")


async def never_run(agent):
    pass


@pytest.mark.parametrize(
    "way",
    [plain, in_a_stream, left_early, called_in_a_thread, failed, cancelled, cancelled_from_outside, refused, never_run],
)
async def test_an_agent_that_is_dropped_is_freed_at_once(way):
    """Scenario A29."""

    class Holder:
        name = "holder"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return await call_next(call)

        @hookimpl
        async def on_event(self, event):
            pass

    gc.collect()
    gc.disable()
    try:
        agent = Agent(
            model=ScriptedModel([use("ping", {}), "ok"]), tools=[ping], plugins=[Holder()], callback_handler=None
        )
        await way(agent)
        await asyncio.sleep(0)
        gone = weakref.ref(agent)
        del agent
        if way is called_in_a_thread:
            for _ in range(1_000):  # the thread may need a moment to let go of its frame
                if gone() is None:
                    break

                await asyncio.sleep(0.01)

        assert gone() is None
    finally:
        gc.enable()


def test_a_result_does_not_keep_its_agent_alive():
    """Scenario A29."""
    gc.collect()
    gc.disable()
    try:
        agent = Agent(model=ScriptedModel([use("ping", {}), "ok"]), tools=[ping], callback_handler=None)
        result = asyncio.run(agent.invoke_async("go"))
        gone = weakref.ref(agent)
        del agent
        assert gone() is None
        assert str(result) == "ok\n"
    finally:
        gc.enable()


async def test_collecting_garbage_in_the_middle_of_a_run_loses_no_task():
    """Scenario A29."""

    @tool
    async def collect(n: int) -> str:
        """Collects garbage while its siblings wait."""
        await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0)
        return str(n)

    agent = Agent(
        model=ScriptedModel([[use("collect", {"n": n}) for n in range(5)], "ok"]),
        tools=[collect],
        callback_handler=None,
    )
    async for event in agent.stream_async("go"):
        if "tools_starting" in event:
            gc.collect()

    results = [block["toolResult"]["content"][0]["text"] for block in agent.messages[2]["content"]]
    assert results == list("01234")
