"""Cancelling stuck tools, and tools that raise what `except Exception` misses (scenarios A19 and A20)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from ropewalk import SequentialToolExecutor, ToolContext, tool
from ropewalk_testing import assert_valid_history, use

STUCK = 30
"""Seconds that a stuck tool would take, if nothing ended it."""


# -- A19 ---------------------------------------------------------------------------------------------------------


def test_a_stuck_async_tool_does_not_hold_a_cancelled_run(ask, make_agent, tool_results, cancel_when):
    """Scenario A19."""
    started, ended = threading.Event(), []

    @tool
    async def stick() -> str:
        """Is stuck."""
        started.set()
        await asyncio.sleep(STUCK)
        ended.append(1)
        return "late"

    agent, model = make_agent([[use("stick", {}, id="A"), use("stick", {}, id="B")], "back"], tools=[stick])
    cancel_when(started, agent)

    result = ask(agent, "go")

    assert (result.stop_reason, ended, model.calls) == ("cancelled", [], 1)
    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("A", "error"), ("B", "error")]
    assert_valid_history(agent.messages)


def test_a_stuck_sync_tool_is_left_behind_and_its_late_result_is_dropped(ask, make_agent, tool_results, cancel_when):
    """Scenario A19."""
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def stick() -> str:
        """Is stuck."""
        started.set()
        go_on.wait(STUCK)
        ended.set()
        return "late"

    agent, _ = make_agent([use("stick", {}, id="A"), "back"], tools=[stick])
    cancel_when(started, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert not ended.is_set(), "the run waited for the tool"
    before = tool_results(agent.messages)
    assert [(r["toolUseId"], r["status"]) for r in before] == [("A", "error")]
    go_on.set()
    assert ended.wait(STUCK)
    assert str(ask(agent, "again")) == "back\n"
    assert tool_results(agent.messages) == before
    assert "late" not in repr(agent.messages)
    assert_valid_history(agent.messages)


def test_a_sync_tool_can_see_that_its_run_was_cancelled(ask, make_agent, cancel_when):
    """Scenario A19."""
    started, seen = threading.Event(), threading.Event()

    def watch(tool_context: ToolContext) -> str:
        """Watches for the end."""
        started.set()
        if tool_context.cancel_signal.wait(STUCK):
            seen.set()

        return "watched"

    agent, _ = make_agent([use("watch", {}), "back"], tools=[tool(context=True)(watch)])
    cancel_when(started, agent)

    assert ask(agent, "go").stop_reason == "cancelled"
    assert seen.wait(STUCK)


def test_tools_that_were_not_started_yet_are_not_run(ask, make_agent, tool_results, cancel_when):
    """Scenario A19."""
    started, ran = threading.Event(), []

    @tool
    async def stick() -> str:
        """Is stuck."""
        started.set()
        await asyncio.sleep(STUCK)
        return "late"

    @tool
    async def note() -> str:
        """Notes."""
        ran.append(1)
        return "noted"

    turns = [[use("stick", {}, id="A"), use("note", {}, id="B")], "back"]
    agent, _ = make_agent(turns, tools=[stick, note], tool_executor=SequentialToolExecutor())
    cancel_when(started, agent)

    assert ask(agent, "go").stop_reason == "cancelled"
    assert ran == []
    begun, never_begun = tool_results(agent.messages)
    assert [(r["toolUseId"], r["status"]) for r in (begun, never_begun)] == [("A", "error"), ("B", "error")]
    assert begun["content"] != never_begun["content"], "a call that was begun may have had its effect"


# -- A20 ---------------------------------------------------------------------------------------------------------


@tool
async def fine() -> str:
    """Is fine."""
    await asyncio.sleep(0)
    return "fine"


def raising(error, *, asynchronous):
    @tool(name="odd")
    async def odd_async() -> str:
        """Raises."""
        await asyncio.sleep(0)
        raise error

    @tool(name="odd")
    def odd_sync() -> str:
        """Raises."""
        raise error

    return odd_async if asynchronous else odd_sync


ORDINARY = {
    "cancelled": asyncio.CancelledError,
    "cancelled with a text": lambda: asyncio.CancelledError("by itself"),
    "group": lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    "timeout": lambda: TimeoutError("slow"),
}


@pytest.mark.parametrize("make_error", ORDINARY.values(), ids=ORDINARY)
@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("parallel", [True, False])
def test_what_a_tool_raises_by_itself_is_an_error_result(
    ask, make_agent, tool_results, make_error, asynchronous, parallel
):
    """Scenario A20."""
    odd = raising(make_error(), asynchronous=asynchronous)
    uses = (
        [use("fine", {}, id="A"), use("odd", {}, id="B"), use("fine", {}, id="C")]
        if parallel
        else [use("odd", {}, id="B")]
    )
    agent, _ = make_agent([uses, "ok"], tools=[fine, odd])

    result = ask(agent, "go")

    assert str(result) == "ok\n"
    statuses = {r["toolUseId"]: r["status"] for r in tool_results(agent.messages)}
    assert statuses == ({"A": "success", "B": "error", "C": "success"} if parallel else {"B": "error"})
    assert_valid_history(agent.messages)


def test_a_group_that_hides_an_interrupt_is_not_swallowed(ask, make_agent):
    """Scenario A20."""
    odd = raising(BaseExceptionGroup("several", [SystemExit(3), ValueError("x")]), asynchronous=True)
    agent, _ = make_agent([[use("fine", {}), use("odd", {})], "ok"], tools=[fine, odd])

    with pytest.raises(BaseExceptionGroup):
        ask(agent, "go")

    assert_valid_history(agent.messages)


FINAL = {"exit": lambda: SystemExit(3), "interrupt": KeyboardInterrupt}


@pytest.mark.parametrize("make_error", FINAL.values(), ids=FINAL)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_what_ends_a_program_leaves_the_loop_and_no_orphan_call(
    ask, make_agent, tool_results, make_error, asynchronous
):
    """Scenario A20."""
    error = make_error()
    odd = raising(error, asynchronous=asynchronous)
    agent, _ = make_agent([[use("fine", {}, id="A"), use("odd", {}, id="B")], "back"], tools=[fine, odd])

    with pytest.raises(type(error)):
        ask(agent, "go")

    assert [r["toolUseId"] for r in tool_results(agent.messages)] == ["A", "B"]
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "back\n"


async def test_a_cancel_from_outside_still_propagates(make_agent):
    """Scenario A20."""
    started = asyncio.Event()

    @tool
    async def stick() -> str:
        """Is stuck."""
        started.set()
        await asyncio.sleep(STUCK)
        return "late"

    agent, _ = make_agent([[use("fine", {}), use("stick", {})], "back"], tools=[fine, stick])
    task = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    task.cancel("from outside")

    with pytest.raises(asyncio.CancelledError):
        await task

    assert task.cancelled()
    assert_valid_history(agent.messages)
    assert str(await agent.invoke_async("again")) == "back\n"


async def test_a_timeout_around_a_call_works(make_agent):
    """Scenario A20."""

    limit = asyncio.timeout(None)

    @tool
    async def stick() -> str:
        """Is stuck, and by now it is too late."""
        limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.sleep(STUCK)
        return "late"

    agent, _ = make_agent([use("stick", {}), "back"], tools=[stick])

    with pytest.raises(TimeoutError):
        async with limit:
            await agent.invoke_async("go")

    assert_valid_history(agent.messages)
    assert asyncio.current_task().cancelling() == 0
    assert str(await agent.invoke_async("again")) == "back\n"


async def test_a_cancelled_run_leaves_its_task_uncancelled(make_agent):
    """Scenario A20."""
    started = asyncio.Event()

    @tool
    async def stick() -> str:
        """Is stuck."""
        started.set()
        await asyncio.sleep(STUCK)
        return "late"

    agent, _ = make_agent([use("stick", {}), "back"], tools=[stick])

    async def cancel():
        await started.wait()
        agent.cancel()

    helper = asyncio.create_task(cancel())
    result = await agent.invoke_async("go")
    await helper

    assert result.stop_reason == "cancelled"
    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


CTRL_C = """
import asyncio, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
from ropewalk import Agent, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, use

ended = []

@tool
async def stick() -> str:
    for _ in range(2_000):  # until the main thread waits
        if sys._current_frames()[threading.main_thread().ident].f_code.co_name == "wait":
            break

        await asyncio.sleep(0.01)

    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(60)
    ended.append(1)
    return "late"

agent = Agent(model=ScriptedModel([use("stick", {}), "back"]), tools=[stick], callback_handler=None)
try:
    agent("go")
except KeyboardInterrupt:
    print("interrupted")

assert not ended
assert_valid_history(agent.messages)
assert str(agent("again")) == "back\\n"
print("usable")
"""


def test_ctrl_c_ends_a_blocking_call_and_the_agent_stays_usable():
    """Scenario A20."""
    done = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, check=False, timeout=300)

    assert (done.returncode, done.stdout.split()) == (0, ["interrupted", "usable"]), done.stderr
