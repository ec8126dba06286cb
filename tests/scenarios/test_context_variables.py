"""Context variables reach tools, hooks and models, and stay apart (scenario A21)."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from ropewalk import Agent, hookimpl, tool
from ropewalk_testing import ScriptedModel, use

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""

tenant = contextvars.ContextVar("tenant", default="nobody")


class Reader:
    """Reads the variable in every kind of hook."""

    name = "reader"

    def __init__(self, seen):
        self.seen = seen

    @hookimpl
    def check_call(self, options):
        self.seen.append(("check_call", tenant.get()))

    @hookimpl
    async def init_agent(self, agent):
        self.seen.append(("init_agent", tenant.get()))

    @hookimpl
    async def around_invocation(self, invocation, call_next):
        self.seen.append(("around_invocation", tenant.get()))
        return await call_next(invocation)

    @hookimpl
    async def around_model_call(self, request, call_next):
        self.seen.append(("around_model_call", tenant.get()))
        return await call_next(request)

    @hookimpl
    async def around_tools(self, batch, call_next):
        self.seen.append(("around_tools", tenant.get()))
        return await call_next(batch)

    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.seen.append(("around_tool_call", tenant.get()))
        return await call_next(call)

    @hookimpl
    async def decide_stop(self, cycle):
        self.seen.append(("decide_stop", tenant.get()))

    @hookimpl
    async def manage_context(self, request, reason):
        self.seen.append(("manage_context", tenant.get()))

    @hookimpl
    async def on_event(self, event):
        self.seen.append(("on_event", tenant.get()))

    @hookimpl
    def on_delta(self, event):
        self.seen.append(("on_delta", tenant.get()))


READERS = {
    *("check_call", "init_agent", "decide_stop", "manage_context", "on_event", "on_delta"),
    *("around_invocation", "around_model_call", "around_tools", "around_tool_call"),
    *("sync tool", "async tool", "generator tool", "model", "callback"),
}


def observed_agent(seen):
    @tool
    def read_sync() -> str:
        """Reads in a thread."""
        seen.append(("sync tool", tenant.get()))
        return "x"

    @tool
    async def read_async() -> str:
        """Reads on the loop."""
        await asyncio.sleep(0)
        seen.append(("async tool", tenant.get()))
        return "x"

    @tool
    async def read_generator():
        """Reads in a generator."""
        yield "first"
        seen.append(("generator tool", tenant.get()))
        yield "last"

    asked = 0

    def model(request):
        nonlocal asked
        asked += 1
        seen.append(("model", tenant.get()))
        return [use("read_sync", {}), use("read_async", {}), use("read_generator", {})] if asked % 2 else "done"

    def callback(**event):
        seen.append(("callback", tenant.get()))

    return Agent(
        model=ScriptedModel(model),
        tools=[read_sync, read_async, read_generator],
        plugins=[Reader(seen)],
        callback_handler=callback,
    )


def test_every_reader_sees_the_callers_value(ask):
    """Scenario A21."""
    seen = []
    agent = observed_agent(seen)

    def run():
        tenant.set("acme")
        return ask(agent, "go")

    assert str(contextvars.copy_context().run(run)) == "done\n"
    assert {reader for reader, _ in seen} == READERS
    assert {value for _, value in seen} == {"acme"}


def test_each_call_has_its_own_value(ask):
    """Scenario A21."""
    seen = []
    agent = observed_agent(seen)

    for value in ("one", "two"):
        seen.clear()

        def run(value=value):
            tenant.set(value)
            return ask(agent, "go")

        contextvars.copy_context().run(run)
        assert {each for _, each in seen} == {value}

    assert tenant.get() == "nobody"


@pytest.mark.parametrize("entry", ["await", "call in threads"])
async def test_two_runs_at_once_keep_their_values_apart(entry):
    """Scenario A21."""
    seen = {"one": [], "two": []}

    async def run(value):
        tenant.set(value)
        agent = observed_agent(seen[value])
        if entry == "await":
            return await agent.invoke_async("go")

        return await asyncio.to_thread(agent, "go")

    await asyncio.gather(run("one"), run("two"))

    assert {value for _, value in seen["one"]} == {"one"}
    assert {value for _, value in seen["two"]} == {"two"}


async def test_a_stream_read_step_by_step_leaks_nothing_into_its_consumer():
    """Scenario A21."""
    seen = []
    tenant.set("acme")
    agent = observed_agent(seen)

    async for _ in agent.stream_async("go"):
        assert tenant.get() == "acme"

    assert {value for _, value in seen} == {"acme"}


def test_what_one_tool_writes_its_sibling_does_not_see(ask, make_agent, tool_results):
    """Scenario A21."""
    on_the_loop, in_a_thread = threading.Event(), threading.Event()

    @tool
    async def write_async() -> str:
        """Writes on the loop."""
        tenant.set("written")
        on_the_loop.set()
        await asyncio.sleep(0)
        return "wrote"

    @tool
    def write_sync() -> str:
        """Writes in a thread."""
        tenant.set("written")
        in_a_thread.set()
        return "wrote"

    @tool
    async def read_async() -> str:
        """Reads on the loop."""
        await asyncio.to_thread(in_a_thread.wait, PATIENCE)
        return tenant.get() if on_the_loop.is_set() and in_a_thread.is_set() else "nothing was written yet"

    @tool
    def read_sync() -> str:
        """Reads in a thread."""
        written = on_the_loop.wait(PATIENCE) and in_a_thread.wait(PATIENCE)
        return tenant.get() if written else "nothing was written yet"

    names = ["write_async", "write_sync", "read_async", "read_sync"]
    agent, _ = make_agent(
        [[use(name, {}) for name in names], "ok"], tools=[write_async, write_sync, read_async, read_sync]
    )

    ask(agent, "go")

    said = [result["content"][0]["text"] for result in tool_results(agent.messages)]
    assert said == ["wrote", "wrote", "nobody", "nobody"]
    assert tenant.get() == "nobody"
