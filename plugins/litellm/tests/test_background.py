from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from ropewalk_litellm.background import in_background

WHO = contextvars.ContextVar("WHO", default="nobody")


async def collected(work):
    return [item async for item in in_background(work)]


async def test_items_come_in_order_and_the_work_runs_elsewhere():
    async def work(put):
        for number in range(1000):
            put(number)

        put(threading.current_thread().name)

    assert await collected(work) == [*range(1000), "ropewalk-litellm"]


def test_loops_in_a_row_share_the_background():
    async def work(put):
        put(asyncio.get_running_loop())

    first, second = asyncio.run(collected(work)), asyncio.run(collected(work))

    assert first == second


async def test_the_work_sees_the_callers_context():
    async def work(put):
        put(WHO.get())
        WHO.set("the work")

    WHO.set("the caller")

    assert await collected(work) == ["the caller"]
    assert WHO.get() == "the caller"


async def test_an_error_reaches_the_caller_after_what_came_before_it():
    async def work(put):
        put(1)
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):  # noqa: PT012 - the loop is one statement
        async for item in in_background(work):
            seen.append(item)  # noqa: PERF401 - what was seen before the error counts

    assert seen == [1]


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_caller_that_leaves_ends_the_work(how):
    ended = threading.Event()

    async def work(put):
        try:
            put("begun")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # closing a connection takes a moment, and is waited for
            ended.set()

    items = in_background(work)
    assert await anext(items) == "begun"
    if how == "closed":
        await items.aclose()
    else:
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert ended.is_set()


async def test_work_that_will_not_end_does_not_hold_its_caller(monkeypatch):
    monkeypatch.setattr("ropewalk_litellm.background._CLOSE_SECONDS", 0.01)
    release = asyncio.Event()
    loops = []

    async def work(put):
        loops.append(asyncio.get_running_loop())
        put("begun")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    items = in_background(work)
    assert await anext(items) == "begun"
    await items.aclose()

    assert not release.is_set()
    loops[0].call_soon_threadsafe(release.set)


async def test_an_exit_in_one_call_leaves_the_others_alone():
    async def leaving(put):
        put(1)
        raise SystemExit(3)

    async def staying(put):
        put(2)

    with pytest.raises(SystemExit):
        await collected(leaving)

    assert await collected(staying) == [2]
