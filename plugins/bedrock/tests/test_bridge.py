from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

import pytest

from ropewalk_bedrock.bridge import from_thread


async def collect(read, stop=lambda: None):
    return [item async for item in from_thread(read, stop)]


async def test_items_come_in_order():
    def read(put):
        for number in range(10_000):
            put(number)

    assert await collect(read) == list(range(10_000))


async def test_nothing_is_a_stream_too():
    assert await collect(lambda put: None) == []


async def test_an_error_comes_after_the_items_before_it():
    def read(put):
        put(1)
        raise ValueError("broken")

    items = from_thread(read, lambda: None)

    assert await anext(items) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(items)


async def test_an_exit_of_the_worker_reaches_the_consumer():
    def read(put):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await collect(read)


async def test_the_loop_goes_on_while_the_worker_waits():
    go = threading.Event()

    def read(put):
        put("a")
        go.wait(10)
        put("b")

    came = []
    async for item in from_thread(read, go.set):
        came.append(item)
        go.set()  # reached only because the loop is not blocked

    assert came == ["a", "b"]


async def test_closing_stops_the_worker_and_does_not_wait_for_it():
    stopped, never = threading.Event(), threading.Event()

    def read(put):
        put("a")
        never.wait(10)
        put("late")

    async with aclosing(from_thread(read, stopped.set)) as items:
        async for item in items:
            assert item == "a"
            break

    assert stopped.is_set()
    assert not never.is_set()
    never.set()


async def test_cancelling_stops_the_worker_and_does_not_wait_for_it():
    stopped, never, started = threading.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def read(put):
        loop.call_soon_threadsafe(started.set)
        never.wait(10)

    task = asyncio.create_task(collect(read, stopped.set))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert stopped.is_set()
    never.set()


async def test_a_finished_stream_is_not_stopped():
    stops = []

    await collect(lambda put: put(1), lambda: stops.append(1))

    assert stops == []


async def test_context_variables_reach_the_worker():
    import contextvars

    tenant = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("acme")

    assert await collect(lambda put: put(tenant.get())) == ["acme"]


def test_a_late_item_after_the_loop_is_closed_is_dropped():
    never, done = threading.Event(), threading.Event()

    def read(put):
        put("a")
        never.wait(10)
        put("late")
        done.set()

    async def first():
        async with aclosing(from_thread(read, lambda: None)) as items:
            return await anext(items)

    assert asyncio.run(first()) == "a"
    never.set()
    assert done.wait(10)
