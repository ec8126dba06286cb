from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk.tools import ToolBatch, ToolCall
from ropewalk.types import ToolResult
from ropewalk_executor import ConcurrentToolExecutor, ExecutorPlugin, SequentialToolExecutor

seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")


class Suspended(BaseException):
    """What an interrupt looks like to an executor."""


def batch_of(count: int) -> ToolBatch:
    run: Any = None
    calls = [ToolCall(run, {"toolUseId": f"T{i}", "name": f"tool_{i}", "input": {}}, None) for i in range(count)]
    return ToolBatch(tuple(calls), {})


def place_of(call: ToolCall) -> int:
    return int(call.tool_use["toolUseId"][1:])


def ok(call: ToolCall) -> ToolResult:
    return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "ok"}]}


def ids(results: list[ToolResult]) -> list[str]:
    return [result["toolUseId"] for result in results]


@pytest.fixture(autouse=True)
async def no_task_is_left():
    yield
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("tool ")] == []


BOTH = pytest.mark.parametrize("executor", [ConcurrentToolExecutor(), SequentialToolExecutor()], ids=repr)


@BOTH
@pytest.mark.parametrize("count", [0, 1, 2, 5])
async def test_results_come_in_the_order_of_the_request(executor, count):
    async def run_tool(call: ToolCall) -> ToolResult:
        for _ in range(count - place_of(call)):  # the first takes longest
            await asyncio.sleep(0)
        return ok(call)

    assert ids(await executor.execute_tools(batch_of(count), run_tool)) == [f"T{i}" for i in range(count)]


@BOTH
async def test_a_single_call_runs_in_the_runs_own_task(executor):
    tasks: list[Any] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        tasks.append(asyncio.current_task())
        return ok(call)

    await executor.execute_tools(batch_of(1), run_tool)
    assert tasks == [asyncio.current_task()]


async def test_the_sequential_executor_starts_a_call_when_the_one_before_has_ended():
    log: list[str] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        log.append(f"start {place_of(call)}")
        await asyncio.sleep(0)
        log.append(f"end {place_of(call)}")
        return ok(call)

    await SequentialToolExecutor().execute_tools(batch_of(3), run_tool)
    assert log == ["start 0", "end 0", "start 1", "end 1", "start 2", "end 2"]


async def test_what_a_call_raises_keeps_the_sequential_executor_from_starting_the_next():
    started: list[int] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        started.append(place_of(call))
        raise Suspended

    with pytest.raises(Suspended):
        await SequentialToolExecutor().execute_tools(batch_of(3), run_tool)

    assert started == [0]


async def test_the_concurrent_executor_overlaps_calls():
    meeting = asyncio.Barrier(3)

    async def run_tool(call: ToolCall) -> ToolResult:
        await meeting.wait()
        return ok(call)

    async with asyncio.timeout(10):
        results = await ConcurrentToolExecutor().execute_tools(batch_of(3), run_tool)

    assert ids(results) == ["T0", "T1", "T2"]


@pytest.mark.parametrize(("limit", "count"), [(1, 5), (3, 10), (7, 3), (128, 300)])
async def test_no_more_calls_and_no_more_tasks_than_allowed_exist_at_a_time(limit, count):
    before = len(asyncio.all_tasks())
    calls = most_calls = most_tasks = 0

    async def run_tool(call: ToolCall) -> ToolResult:
        nonlocal calls, most_calls, most_tasks
        calls += 1
        most_calls = max(most_calls, calls)
        most_tasks = max(most_tasks, len(asyncio.all_tasks()) - before)
        for _ in range(place_of(call) % 3):
            await asyncio.sleep(0)
        calls -= 1
        return ok(call)

    results = await ConcurrentToolExecutor(limit).execute_tools(batch_of(count), run_tool)

    assert ids(results) == [f"T{i}" for i in range(count)]
    assert most_calls <= limit
    assert most_tasks <= limit


async def test_a_free_place_is_filled_at_once():
    held, fourth = asyncio.Event(), asyncio.Event()

    async def run_tool(call: ToolCall) -> ToolResult:
        if place_of(call) == 0:
            await held.wait()
        if place_of(call) == 3:
            fourth.set()
        return ok(call)

    running = asyncio.create_task(ConcurrentToolExecutor(2).execute_tools(batch_of(4), run_tool))
    async with asyncio.timeout(10):
        await fourth.wait()  # although the first call still holds one of the two places

    held.set()
    assert ids(await running) == ["T0", "T1", "T2", "T3"]


@pytest.mark.parametrize("limit", [1, 2, 128])
async def test_calls_see_the_runs_context_variables_and_not_each_others(limit):
    async def run_tool(call: ToolCall) -> ToolResult:
        before = seen.get()
        seen.set(f"set by {place_of(call)}")
        await asyncio.sleep(0)
        return {**ok(call), "content": [{"text": before}]}

    token = seen.set("the run's")
    try:
        results = await ConcurrentToolExecutor(limit).execute_tools(batch_of(5), run_tool)
        assert [result["content"][0]["text"] for result in results] == ["the run's"] * 5
        assert seen.get() == "the run's"
    finally:
        seen.reset(token)


# -- suspension --------------------------------------------------------------------------------------------------


async def test_a_suspension_lets_running_calls_end_and_starts_no_more():
    started: list[int] = []
    ended: list[int] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        started.append(place_of(call))
        if place_of(call) == 1:
            raise Suspended("ask")

        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(place_of(call))
        return ok(call)

    with pytest.raises(Suspended, match="ask"):
        await ConcurrentToolExecutor(3).execute_tools(batch_of(6), run_tool)

    assert started == [0, 1, 2]
    assert ended == [0, 2]


async def test_of_several_suspensions_the_first_of_the_request_is_raised_with_notes_of_the_others():
    async def run_tool(call: ToolCall) -> ToolResult:
        for _ in range(3 - place_of(call)):  # the last is raised first
            await asyncio.sleep(0)
        raise Suspended(f"ask {place_of(call)}")

    with pytest.raises(Suspended, match="ask 0") as caught:
        await ConcurrentToolExecutor().execute_tools(batch_of(3), run_tool)

    assert caught.value.__notes__ == [
        "the call 'T1' of 'tool_1' in the same message raised Suspended: ask 1",
        "the call 'T2' of 'tool_2' in the same message raised Suspended: ask 2",
    ]


# -- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, ZeroDivisionError])
@pytest.mark.parametrize("suspended", [False, True])
async def test_anything_else_cancels_the_other_calls_waits_for_them_and_is_raised(error, suspended):
    cancelled: list[int] = []
    started: list[int] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        place = place_of(call)
        started.append(place)
        if place == 0 and suspended:
            raise Suspended("ask")

        if place == 1:
            await asyncio.sleep(0)
            raise error("stop")

        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # it takes its time to end
            cancelled.append(place)
            raise

        return ok(call)

    with pytest.raises(error, match="stop") as caught:
        await ConcurrentToolExecutor(3).execute_tools(batch_of(5), run_tool)

    assert started == [0, 1, 2]
    assert cancelled == ([2] if suspended else [0, 2])
    notes = getattr(caught.value, "__notes__", [])
    assert notes == (["the call 'T0' of 'tool_0' in the same message raised Suspended: ask"] if suspended else [])


async def test_what_leaves_the_loop_goes_before_an_earlier_failure():
    async def run_tool(call: ToolCall) -> ToolResult:
        if place_of(call) == 0:
            await asyncio.sleep(0)  # the other has begun
            raise ZeroDivisionError("first")

        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise SystemExit(3) from None

        return ok(call)

    with pytest.raises(SystemExit) as caught:
        await ConcurrentToolExecutor().execute_tools(batch_of(2), run_tool)

    assert caught.value.__notes__ == ["the call 'T0' of 'tool_0' in the same message raised ZeroDivisionError: first"]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancellation_of_the_run_reaches_every_call_and_is_raised(times):
    cancelled: list[int] = []

    async def run_tool(call: ToolCall) -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                with contextlib.suppress(asyncio.CancelledError):  # cancelled again while it cleans up
                    await asyncio.sleep(0)
            cancelled.append(place_of(call))

        return ok(call)

    running = asyncio.create_task(ConcurrentToolExecutor(2).execute_tools(batch_of(4), run_tool))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for _ in range(times):
        running.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await running

    assert cancelled == [0, 1]
    assert running.cancelled()


async def test_a_call_that_survives_its_cancellation_still_ends_the_batch():
    async def run_tool(call: ToolCall) -> ToolResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ok(call)

        raise AssertionError

    running = asyncio.create_task(ConcurrentToolExecutor().execute_tools(batch_of(2), run_tool))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_tasks_that_a_stranger_cancels_before_they_begin_end_the_batch():
    mine = asyncio.current_task()

    async def run_tool(call: ToolCall) -> ToolResult:
        return ok(call)

    def cancel_the_calls() -> None:
        for task in asyncio.all_tasks():
            if task.get_name() == "tool tool_1":
                task.cancel()

    running = asyncio.create_task(ConcurrentToolExecutor().execute_tools(batch_of(3), run_tool))
    asyncio.get_running_loop().call_soon(cancel_the_calls)
    with pytest.raises(asyncio.CancelledError):
        await running

    assert mine is not None
    assert not mine.cancelling()


async def test_tasks_survive_the_garbage_collector():
    collected = 0

    async def run_tool(call: ToolCall) -> ToolResult:
        nonlocal collected
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, weak_set(weakref.ref(future)))
        collected += gc.collect() >= 0
        await future
        return ok(call)

    def weak_set(reference: Callable[[], Any]) -> Callable[[], None]:
        return lambda: reference().set_result(None)

    assert ids(await ConcurrentToolExecutor().execute_tools(batch_of(2), run_tool)) == ["T0", "T1"]
    assert collected == 2


@pytest.mark.parametrize("raising", [{0}, {1}, {0, 1}])
async def test_a_raised_error_does_not_lead_back_to_itself(raising: set[int]):
    class Marked(Suspended):
        pass

    async def run_tool(call: ToolCall) -> ToolResult:
        if place_of(call) in raising:
            raise Marked

        return ok(call)

    gc.collect()
    gc.disable()
    try:
        gone = None
        try:
            await ConcurrentToolExecutor().execute_tools(batch_of(2), run_tool)
        except Marked as error:
            gone = weakref.ref(error)

        await asyncio.sleep(0)
        assert gone is not None
        assert gone() is None
    finally:
        gc.enable()


# -- construction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 1.5, "4", None, True])
def test_a_bad_bound_is_refused(value):
    with pytest.raises(ValueError, match=r"ConcurrentToolExecutor: max_concurrency=.*a whole number of at least 1"):
        ConcurrentToolExecutor(max_concurrency=value)


def test_the_plugin_is_the_concurrent_executor_with_its_default_bound():
    assert ExecutorPlugin().max_concurrency == 128
    assert ExecutorPlugin.name == SequentialToolExecutor.name == "executor"
