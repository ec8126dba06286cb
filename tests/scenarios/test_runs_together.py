"""Runs beside one another, cancelled from two sides, and what errors leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
import weakref

import pytest

from ropewalk import Agent, SessionManager, current_run, hookimpl
from ropewalk_testing import MemoryLogStore, ScriptedModel, assert_valid_history, use


class Waits:
    """A tool that lets the event loop go round."""

    effect = "irreversible"

    def __init__(self, name, rounds=1):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": "Waits.", "inputSchema": {"json": {"type": "object"}}}
        self.rounds = rounds

    async def invoke(self, call):
        for _ in range(self.rounds):
            await asyncio.sleep(0)

        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "ok"}]}


class SlowStore:
    """A store that awaits, as those of files and databases do."""

    def __init__(self):
        self.kept = MemoryLogStore()
        self.full = False

    def __getattr__(self, name):
        return getattr(self.kept, name)

    async def append(self, *given):
        await asyncio.sleep(0)
        if self.full:
            raise OSError("full")

        position = await self.kept.append(*given)
        await asyncio.sleep(0)
        return position


def answers(request):
    return "done" if "toolResult" in request.messages[-1]["content"][-1] else [use("a", {}), use("b", {})]


def make_agent(*, store=None, rounds=1, **parameters):
    if store is not None:
        parameters["session_manager"] = SessionManager("s", store)

    model = ScriptedModel(answers, record=False)
    return Agent(model=model, tools=[Waits("a", rounds), Waits("b", rounds)], callback_handler=None, **parameters)


@pytest.fixture
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def rounds(count):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(5))
async def test_the_log_of_runs_beside_one_another_adds_up_to_the_agent(seed):
    chance, store = random.Random(seed), SlowStore()
    agent = make_agent(store=store, concurrent_invocation_mode="unsafe_reentrant")

    async def call(who):
        for number in range(3):
            await rounds(chance.randint(0, 25))
            await agent.invoke_async(f"{who}{number}")

    await asyncio.gather(*(call(who) for who in "abcd"))

    assert_valid_history(list(agent.messages))
    assert list(make_agent(store=store.kept).messages) == list(agent.messages)


def test_runs_beside_one_another_may_be_in_several_event_loops():
    store = SlowStore()
    agent = make_agent(store=store, rounds=20, concurrent_invocation_mode="unsafe_reentrant")
    failed = []

    async def calls():
        for _ in range(4):
            await agent.invoke_async("go")

    def thread():
        try:
            asyncio.run(asyncio.wait_for(calls(), 30))
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            failed.append(error)

    threads = [threading.Thread(target=thread) for _ in range(4)]
    for each in threads:
        each.start()

    for each in threads:
        each.join(60)

    assert failed == []


async def test_a_side_effect_that_hooks_of_tools_at_once_ask_for_happens_once():
    done = []

    class Notifying:
        name = "notifying"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            async def notify():
                done.append(True)
                await asyncio.sleep(0)

            await current_run().once("notify", notify)
            return await call_next(call)

    await make_agent(plugins=[Notifying()]).invoke_async("go")
    assert done == [True]


async def test_a_cancel_from_outside_while_records_are_written_is_not_lost_to_one_from_inside():
    class CleaningUp:
        name = "cleaning-up"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            try:
                return await call_next(call)
            finally:
                await rounds(2)

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            try:
                return await call_next(invocation)
            finally:
                await rounds(2)

    tried = 0
    for steps in range(100):
        agent = make_agent(store=SlowStore(), plugins=[CleaningUp()])
        task = asyncio.create_task(agent.invoke_async("go"))
        await rounds(steps)
        if task.done():
            break

        tried += 1
        task.cancel()
        agent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert 10 < tried < 100


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("how", ["task group", "wait", "consumer twice"])
async def test_an_agent_is_freed_at_once_after_a_cancellation_that_nobody_looks_at(how):
    held = [make_agent(rounds=50)]  # the frames below may stay for a while: a TaskGroup's errors keep them

    async def consume():
        async for _ in held[0].stream_async("go"):
            pass

    async def fail():
        await rounds(8)
        raise ValueError

    async def cancelled():
        if how == "task group":
            with contextlib.suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(held[0].invoke_async("go"))
                    group.create_task(fail())

            return

        task = asyncio.create_task(held[0].invoke_async("go") if how == "wait" else consume())
        await rounds(8)
        task.cancel()
        if how == "consumer twice":
            await rounds(1)
            task.cancel()

        await asyncio.wait([task])

    await cancelled()
    gone = weakref.ref(held[0])
    held.clear()
    await rounds(10)
    assert gone() is None


@pytest.mark.usefixtures("_no_collector")
async def test_an_agent_is_freed_at_once_after_a_write_that_failed():
    store = SlowStore()
    agent = make_agent(store=store)
    store.full = True
    with contextlib.suppress(OSError):
        await agent.invoke_async("go")

    gone = weakref.ref(agent)
    del agent
    await rounds(2)
    assert gone() is None
