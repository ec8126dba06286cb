"""Worker threads: what comes too late is dropped without a word, and who is idle goes home."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk.kits.aio import threads
from ropewalk.kits.aio.threads import in_thread


@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("end", ["returns", "raises", "stops"])
async def test_what_a_body_comes_to_after_its_waiter_was_cancelled_is_dropped(end):
    began, go_on, settled = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def body():
        loop.call_soon_threadsafe(began.set)
        assert go_on.wait(10)
        if end == "raises":
            raise ValueError("late")
        if end == "stops":
            raise StopIteration

        return "late"

    task = asyncio.create_task(in_thread(body))
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    go_on.set()
    assert await in_thread(lambda: "next") == "next"
    for _ in range(100):
        if threads._idle:
            break

        await asyncio.sleep(0.01)

    loop.call_soon(settled.set)
    await asyncio.wait_for(settled.wait(), 10)


async def test_an_idle_worker_ends_and_another_one_is_hired(monkeypatch):
    monkeypatch.setattr(threads, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(threads, "_idle", [])
    worker = await in_thread(threading.current_thread)
    await asyncio.to_thread(worker.join, 10)

    assert not worker.is_alive()
    assert threads._idle == []
    assert await in_thread(lambda: "again") == "again"


async def test_a_worker_that_was_picked_while_it_went_home_does_its_work(monkeypatch):
    picked = threads._Worker.__new__(threads._Worker)
    monkeypatch.setattr(threads, "_idle", [])

    assert threads._retire(picked) is False
    threads._idle.append(picked)
    assert threads._retire(picked) is True
    assert threads._idle == []
