from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ropewalk_tools import tool

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


async def test_a_sync_tool_runs_in_a_thread_and_the_loop_stays_responsive(said):
    released = threading.Event()

    @tool
    def waits() -> str:
        return f"{released.wait(10)} {threading.current_thread() is threading.main_thread()}"

    waiting = asyncio.create_task(said(waits))
    await asyncio.sleep(0)  # had it run here, this would not be reached before the ten seconds are over
    released.set()

    assert await waiting == "True False"


async def test_an_async_tool_runs_in_the_loop(said):
    @tool
    async def where() -> str:
        await asyncio.sleep(0)
        return str(threading.current_thread() is threading.main_thread())

    assert await said(where) == "True"


async def test_a_sync_tool_sees_the_context_variables_and_its_writes_stay_its_own(said):
    @tool
    def who() -> str:
        seen = tenant.get()
        tenant.set("changed")
        return seen

    token = tenant.set("acme")
    try:
        assert await said(who) == "acme"
        assert tenant.get() == "acme"
    finally:
        tenant.reset(token)


async def test_items_of_an_async_generator_are_shown_and_the_last_is_the_result(run, said):
    @tool
    async def count(n: int) -> AsyncIterator[Any]:
        for i in range(n):
            yield {"i": i}
            await asyncio.sleep(0)
        yield "done"

    assert await said(count, n=2) == "done"
    assert run.streamed == [{"i": 0}, {"i": 1}, "done"]


async def test_items_of_a_sync_generator_are_shown_and_it_runs_in_a_thread(run, said):
    @tool
    def count(n: int) -> Iterator[Any]:
        for _ in range(n):
            yield threading.current_thread() is threading.main_thread()
        yield tenant.get()

    token = tenant.set("acme")
    try:
        assert await said(count, n=2) == "acme"
    finally:
        tenant.reset(token)

    assert run.streamed == [False, False, "acme"]


async def test_a_value_that_a_sync_generator_returns_is_the_result(run, said):
    @tool
    def count() -> Any:
        yield 1
        return "all"

    assert await said(count) == "all"
    assert run.streamed == [1]


async def test_a_generator_without_items_is_a_clear_error(failed):
    @tool
    async def empty() -> AsyncIterator[int]:
        return
        yield 1

    @tool
    def empty_too() -> Iterator[int]:
        return
        yield 1

    expected = "Error: the tool's generator ended without an item, so there is no result: yield at least one"
    assert await failed(empty) == expected
    assert await failed(empty_too) == expected


@pytest.mark.parametrize("last", [None, 0, "", False])
async def test_a_falsy_last_item_is_a_result(last, invoke):
    @tool
    async def ends() -> AsyncIterator[Any]:
        yield "first"
        yield last

    assert (await invoke(ends))["status"] == "success"


async def test_an_error_in_a_generator_is_an_error_result_after_the_items(run, failed):
    @tool
    async def breaks() -> AsyncIterator[int]:
        yield 1
        raise KeyError("k")

    @tool
    def breaks_too() -> Iterator[int]:
        yield 2
        raise KeyError("k")

    assert await failed(breaks) == "Error: KeyError - 'k'"
    assert await failed(breaks_too) == "Error: KeyError - 'k'"
    assert run.streamed == [1, 2]


async def test_a_cancelled_async_generator_is_closed(invoke):
    started, closed = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> AsyncIterator[int]:
        try:
            started.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.set()

    task = asyncio.create_task(invoke(endless))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert closed.is_set()


async def test_an_async_generator_whose_item_cannot_be_shown_is_closed(run, failed, monkeypatch):
    closed: list[bool] = []

    def broken(tool_use: Any, data: Any) -> None:
        raise RuntimeError("nobody there")

    @tool
    async def count() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    monkeypatch.setattr(run, "tool_streamed", broken)

    assert await failed(count) == "Error: RuntimeError - nobody there"
    assert closed == [True]


async def test_a_cancelled_sync_generator_stops_after_its_item_and_shows_nothing_more(run, invoke):
    loop = asyncio.get_running_loop()
    started, closed = asyncio.Event(), asyncio.Event()
    go_on = threading.Event()

    @tool
    def endless() -> Iterator[int]:
        try:
            loop.call_soon_threadsafe(started.set)
            go_on.wait(10)
            yield from range(1_000_000)
        finally:
            loop.call_soon_threadsafe(closed.set)

    task = asyncio.create_task(invoke(endless))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    go_on.set()
    await closed.wait()
    assert run.streamed == []


def through(function: Any) -> Any:
    """A decorator that knows nothing of async."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def test_a_sync_wrapper_around_async_functions_is_followed(run, said):
    @tool
    @through
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @tool
    @through
    async def steps(n: int) -> AsyncIterator[int]:
        yield n
        yield n + 1

    @tool
    @through
    def steps_too(n: int) -> Iterator[int]:
        yield n
        yield n + 1

    assert [await said(made, n=1) for made in (later, steps, steps_too)] == ["1", "2", "2"]
    assert run.streamed == [1, 2, 1, 2]
