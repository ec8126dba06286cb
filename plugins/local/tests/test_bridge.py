from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from ropewalk_local import bridge
from ropewalk_local.bridge import from_thread


def live():
    """Threads of the bridge that have not ended, after giving them time to."""
    for thread in list(bridge._live):
        thread.join(10)

    return list(bridge._live)


async def test_items_come_in_order():
    def work(emit, stopped):
        for number in range(100):
            assert not emit(number)

    assert [item async for item in from_thread(work, "t")] == list(range(100))
    assert live() == []


async def test_an_error_of_the_work_reaches_the_consumer_after_its_items():
    def work(emit, stopped):
        emit(1)
        raise KeyError("gone")

    items = from_thread(work, "t")
    assert await anext(items) == 1
    with pytest.raises(KeyError, match="gone"):
        await anext(items)


async def test_closing_ends_the_work():
    def work(emit, stopped):
        while not emit(1):
            pass

    items = from_thread(work, "t")
    assert await anext(items) == 1
    await items.aclose()

    assert live() == []


async def test_cancelling_a_silent_wait_returns_at_once_and_ends_the_work():
    ended = threading.Event()

    def work(emit, stopped):
        while not stopped():
            ended.wait(0.01)

        ended.set()

    async def consume():
        async for _ in from_thread(work, "t"):
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert live() == []
    assert ended.is_set()


async def test_the_loop_runs_while_the_work_blocks():
    free = threading.Event()

    def work(emit, stopped):
        free.wait(10)
        emit("done")

    items = from_thread(work, "t")
    waiting = asyncio.create_task(anext(items))
    await asyncio.sleep(0.01)
    free.set()  # only a running loop gets here

    assert await waiting == "done"
    await items.aclose()


def test_work_whose_loop_is_gone_is_told_to_stop():
    go_on, stops = threading.Event(), []

    def work(emit, stopped):
        emit(1)
        go_on.wait(10)
        stops.append(emit(2))

    loop = asyncio.new_event_loop()
    items = from_thread(work, "t")
    loop.run_until_complete(anext(items))
    loop.close()
    go_on.set()
    live()

    assert stops == [True]
    with pytest.raises(StopIteration):
        items.aclose().send(None)


async def test_the_work_sees_the_callers_context():
    variable = contextvars.ContextVar("variable")
    variable.set("mine")

    def work(emit, stopped):
        emit(variable.get())

    assert [item async for item in from_thread(work, "t")] == ["mine"]
