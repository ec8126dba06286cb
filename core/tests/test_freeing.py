"""An agent goes when it is let go, whatever has happened to it: the collector is not needed."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from functools import partial

import pytest
from kernel_fakes import FakeModel, FakeTool, collect, events_of, make_plugin, parallel, use

from ropewalk import Agent, HistoryError, ModelError, ModelRequest, current_run, hookimpl


class HookError(Exception):
    pass


async def quick(call):
    return "ok"


async def awaiting(agent, expected):
    with contextlib.suppress(expected):  # inside the loop: what leaves asyncio.run is in a cycle of asyncio's own
        await agent.invoke_async("go")


async def streaming(agent, expected):
    with contextlib.suppress(expected):
        await collect(agent, "go")


def called(agent, expected):
    with contextlib.suppress(expected):
        agent("go")


ENTRIES = {
    "called": called,
    "awaited": lambda agent, expected: asyncio.run(awaiting(agent, expected)),
    "streamed": lambda agent, expected: asyncio.run(streaming(agent, expected)),
}


async def raising_hook(self, call, call_next):
    raise HookError


def exits(call):
    raise SystemExit(3)


RUNS = {
    "text": ((), lambda: Agent(model=FakeModel("x"))),
    "tools": ((), lambda: Agent(model=FakeModel([use("t"), use("t")], "x"), tools=[FakeTool("t", quick)])),
    "tools at once": (
        (),
        lambda: Agent(model=FakeModel([use("t"), use("t")], "x"), tools=[FakeTool("t", quick)], plugins=[parallel()]),
    ),
    "thread": ((), lambda: Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t")])),
    "tool error": ((), lambda: Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t", lambda call: 1 / 0)])),
    "model error": (ModelError, lambda: Agent(model=FakeModel(ModelError("no")))),
    "incomplete": (ModelError, lambda: Agent(model=FakeModel([{"messageStart": {}}]))),
    "hook error": (
        HookError,
        lambda: Agent(
            model=FakeModel(use("t")),
            tools=[FakeTool("t", quick)],
            plugins=[make_plugin(around_tool_call=raising_hook)],
        ),
    ),
    "exit": (SystemExit, lambda: Agent(model=FakeModel(use("t")), tools=[FakeTool("t", exits)])),
    "edit": (HistoryError, lambda: _with_bad_edit()),  # noqa: PLW0108 - defined below,
}


def _with_bad_edit():
    agent = Agent(model=FakeModel("x"))
    agent.messages.append({"role": "nobody"})
    return agent


def _with_full_disk(kind):
    async def write_records(self, records):
        await asyncio.sleep(0)
        if any(record.kind == kind for record in records):
            raise OSError("disk full")

    return Agent(
        model=FakeModel([use("t"), use("t")], "x"),
        tools=[FakeTool("t", quick)],
        plugins=[parallel(), make_plugin(write_records=write_records)],
    )


async def asking(call):
    return call.interrupt("may I?")


async def asking_at_the_end(self, request, reason):
    if reason == "after_invocation":
        current_run().interrupt("may I?")


async def failing_beside(self, invocation, call_next):
    await current_run().ask_model(ModelRequest(messages=[{"role": "user", "content": [{"text": "?"}]}]), "test")


async def failing_once(self, call, call_next):
    async def fail():
        await asyncio.sleep(0)
        raise HookError

    await current_run().once("it", fail)


def _with_hooks(*turns, body=quick, **hooks):
    plugins = [parallel(), make_plugin("hooked", **hooks)] if hooks else [parallel()]
    return Agent(model=FakeModel(*turns), tools=[FakeTool("t", body)], plugins=plugins)


RUNS |= {
    "tool that asks": ((), lambda: Agent(model=FakeModel([use("t"), use("t")]), tools=[FakeTool("t", asking)])),
    "tools at once that ask": ((), partial(_with_hooks, [use("t"), use("t")], body=asking)),
    "question at the end": ((), partial(_with_hooks, "x", manage_context=asking_at_the_end)),
    "error beside": (ModelError, lambda: _with_hooks(ModelError("no"), around_invocation=failing_beside)),
    "effect that fails at once": (HookError, partial(_with_hooks, [use("t"), use("t")], around_tool_call=failing_once)),
}
for _kind in ("snapshot_loaded", "model_started", "tool_started", "tool_ended", "run_ended"):
    RUNS[f"{_kind} cannot be written"] = (OSError, partial(_with_full_disk, _kind))


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", RUNS)
def test_an_agent_is_freed_at_once_after_a_run(kind, entry):
    expected, make = RUNS[kind]
    agent = make()
    ENTRIES[entry](agent, expected)
    gone = weakref.ref(agent)

    del agent

    assert gone() is None


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("how", ["abandoned", "closed", "cancelled"])
async def test_an_agent_is_freed_at_once_after_a_stream_that_was(how):
    agent = Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t", quick)])
    events = agent.stream_async("go")
    await anext(events)
    if how == "closed":
        await events.aclose()
    elif how == "cancelled":
        agent.cancel()
        async for _ in events:
            pass

    gone = weakref.ref(agent)
    del agent, events
    for _ in range(10):
        await asyncio.sleep(0)

    assert gone() is None


class FailingModel:
    """Says a word, and fails: at once or, with `waits`, when it is cancelled."""

    context_window = None

    def __init__(self, *, waits):
        self.waits = waits

    async def stream(self, request):
        yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}}
        try:
            if self.waits:
                await asyncio.Event().wait()
        finally:
            await rounds(5)


async def failing_anyway(self, request, call_next):
    try:
        await call_next(request)
    finally:
        raise HookError


async def rounds(count):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("leave", ["closed", "cancelled", "cancelled twice"])
async def test_an_agent_is_freed_at_once_when_the_consumer_leaves_about_the_time_of_an_error(when, leave):
    async def consume():
        agent = Agent(
            model=FailingModel(waits=when == "before"), plugins=[make_plugin(around_model_call=failing_anyway)]
        )
        gone.append(weakref.ref(agent))
        events = agent.stream_async("go")
        async for event in events:
            if "data" in event:
                break

        await rounds(40 if when == "after" else 0)
        try:
            reached.set()
            await (asyncio.Event().wait() if leave != "closed" else rounds(0))
        finally:
            await events.aclose()

    gone, reached = [], asyncio.Event()
    task = asyncio.create_task(consume())
    await reached.wait()
    for _ in range(["closed", "cancelled", "cancelled twice"].index(leave)):
        task.cancel()
        await rounds(1)

    await asyncio.wait([task])
    del task
    await rounds(40)
    assert gone[0]() is None


async def group(start):
    """A task group that another task of it brings down: it never looks at the cancelled one."""

    async def fail():
        await started.wait()
        raise HookError

    started = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(start(started))
            tasks.create_task(fail())
    except* HookError:
        pass


async def waited_for(start, times=1):
    """A task that is cancelled and waited for, and whose end nobody fetches."""
    started = asyncio.Event()
    task = asyncio.create_task(start(started))
    await started.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)

    await asyncio.wait([task])


async def timed_out(start):
    started = asyncio.Event()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as limit:
            asyncio.create_task(started.wait()).add_done_callback(lambda _: limit.reschedule(0))
            await start(started)


ENDS = {"a group": group, "waited for": waited_for, "twice": partial(waited_for, times=2), "timed out": timed_out}
WAITS = ("model", "tool", "tools at once", "around_tool_call", "around_invocation", "write_records", "init_agent")


class Staying:
    """A plugin that is, with its tool and its model, at many places, and stays at one of them the first time."""

    name = "staying"
    context_window = None
    tool_name = "t"
    tool_spec = {"name": "t", "description": "t", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    def __init__(self, where, reached):
        self.where = where
        self.reached = reached

    async def at(self, *places):
        if self.where in places and not self.reached.is_set():
            self.reached.set()
            await asyncio.Event().wait()

    async def stream(self, request):
        await self.at("model")
        for event in events_of("x" if len(request.messages) > 1 else [use("t"), use("t")], 1):
            yield event

    async def invoke(self, call):
        await self.at("tool", "tools at once")
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "ok"}]}

    @hookimpl
    async def init_agent(self, agent):
        await self.at("init_agent")

    @hookimpl
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        await self.at("around_invocation")
        return result

    @hookimpl
    async def around_tool_call(self, call, call_next):
        await self.at("around_tool_call")
        return await call_next(call)

    @hookimpl
    async def write_records(self, records):
        await asyncio.sleep(0)
        if any(record.kind == "tool_started" for record in records):
            await self.at("write_records")


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("streams", [False, True], ids=["awaited", "streamed"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("where", WAITS)
async def test_an_agent_is_freed_at_once_after_a_cancellation_that_nobody_looks_at(where, end, streams):
    async def start(started):
        stays = Staying(where, started)
        agent = Agent(model=stays, tools=[stays], plugins=[stays] if where == "tool" else [stays, parallel()])
        gone.append(weakref.ref(agent))
        if streams:
            async for _ in agent.stream_async("go"):
                pass
        else:
            await agent.invoke_async("go")

    gone = []
    await asyncio.wait_for(ENDS[end](start), 20)
    await rounds(10)

    assert gone[0]() is None


@pytest.mark.usefixtures("_no_collector")
def test_the_result_does_not_keep_the_agent():
    agent = Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t", quick)])
    result = agent("go")
    gone = weakref.ref(agent)
    del agent

    assert gone() is None
    assert str(result) == "x\n"
