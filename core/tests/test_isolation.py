"""Context variables: every reader sees its own run's value, and a tool's writes stay its own."""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from kernel_fakes import FakeModel, FakeTool, collect, make_plugin, parallel, use

from ropewalk import Agent
from ropewalk.kits.aio.isolation import Isolated
from ropewalk.kits.aio.threads import in_thread

VARIABLE = contextvars.ContextVar("variable", default="unset")


def readers(seen):
    """An agent that reads the variable everywhere, and whose tools write it."""

    def read(place):
        seen.append((place, VARIABLE.get()))

    async def writes(call):
        read("async tool")
        VARIABLE.set("written by a tool")
        await asyncio.sleep(0)
        seen.append(("own write", VARIABLE.get()))

    def writes_in_thread(call):
        read("thread tool")
        VARIABLE.set("written in a thread")

    async def model():
        read("model")
        yield {"messageStop": {"stopReason": "end_turn"}}

    async def around(self, subject, call_next):
        read("hook before")
        outcome = await call_next(subject)
        read("hook after")
        return outcome

    async def around_tool_call(self, call, call_next):
        return await around(self, call, call_next)

    async def around_invocation(self, invocation, call_next):
        return await around(self, invocation, call_next)

    async def on_event(self, event):
        read("on_event")

    def on_delta(self, event):
        read("on_delta")

    plugin = make_plugin(
        around_tool_call=around_tool_call, around_invocation=around_invocation, on_event=on_event, on_delta=on_delta
    )
    calls = [use("writes"), use("writes_in_thread"), use("writes")]
    tools = [FakeTool("writes", writes), FakeTool("writes_in_thread", writes_in_thread)]
    return FakeModel(calls, calls, model), tools, plugin


@pytest.mark.parametrize("executor", [False, True], ids=["in order", "at once"])
def test_writes_of_a_tool_show_nowhere_else_and_everybody_reads_the_callers_value(executor, ask):
    seen = []
    model, tools, plugin = readers(seen)
    agent = Agent(model=model, tools=tools, plugins=[plugin, parallel()] if executor else [plugin])
    token = VARIABLE.set("mine")
    try:
        ask(agent, "go")
    finally:
        VARIABLE.reset(token)

    assert {value for place, value in seen if place == "own write"} == {"written by a tool"}
    assert {value for place, value in seen if place != "own write"} == {"mine"}
    places = {"async tool", "thread tool", "model", "hook before", "hook after", "on_event", "on_delta", "own write"}
    assert {place for place, _ in seen} == places
    assert VARIABLE.get() == "unset"


@pytest.mark.parametrize("entry", ["awaited", "streamed", "called"])
async def test_two_runs_at_once_see_their_own_values(entry):
    async def run(name):
        seen = []
        model, tools, plugin = readers(seen)
        agent = Agent(model=model, tools=tools, plugins=[plugin])
        VARIABLE.set(name)
        if entry == "awaited":
            await agent.invoke_async("go")
        elif entry == "streamed":
            await collect(agent, "go")
        else:
            await asyncio.to_thread(agent, "go")

        return {value for place, value in seen if place != "own write"}

    assert await asyncio.gather(*(run(f"run {n}") for n in range(6))) == [{f"run {n}"} for n in range(6)]


# -- the two pieces ----------------------------------------------------------------------------------------------


async def test_isolated_hands_values_errors_and_cancellation_through():
    async def gives():
        await asyncio.sleep(0)
        return 3

    async def raises():
        await asyncio.sleep(0)
        raise KeyError("k")

    async def catches():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            VARIABLE.set("cleaned")
            await asyncio.sleep(0)
            return VARIABLE.get()

    async def wait(coroutine):
        return await Isolated(coroutine)

    assert await Isolated(gives()) == 3
    with pytest.raises(KeyError):
        await Isolated(raises())

    task = asyncio.create_task(wait(catches()))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "cleaned"
    assert VARIABLE.get() == "unset"


async def test_isolated_closes_its_coroutine():
    closed = []

    async def waits():
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def wrapper():
        await Isolated(waits())

    coroutine = wrapper()
    coroutine.send(None)
    coroutine.close()

    assert closed == [True]


@pytest.mark.parametrize(
    "error", [ValueError("v"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr
)
async def test_a_thread_hands_on_whatever_its_body_raises(error):
    def body():
        raise error

    with pytest.raises(type(error)) as caught:
        await in_thread(body)

    assert caught.value is error
    assert await in_thread(lambda a, b: a + b, 1, b=2) == 3


async def test_a_late_result_of_a_thread_is_dropped():
    import threading

    release = threading.Event()
    task = asyncio.create_task(in_thread(release.wait, 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    release.set()
    assert await in_thread(lambda: "next") == "next"


async def test_a_cancellation_reaches_an_isolated_coroutine_also_where_it_waits_for_nothing():
    async def steps():
        try:
            for _ in range(1000):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            return "stopped"

        return "went on"

    async def outer():
        return await Isolated(steps())

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()

    assert await task == "stopped"
