from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from ropewalk.kits.aio.deadlines import LATE, within


class Left(BaseException):
    """No error."""


async def answer():
    await asyncio.sleep(0)
    return "yes"


async def test_an_answer_in_time_is_returned():
    assert await within(30, answer()) == "yes"


async def test_what_does_not_answer_in_time_is_cut_off():
    cut = []

    async def never():
        try:
            await asyncio.Event().wait()
        finally:
            cut.append(True)

    assert await within(0.01, never()) is LATE
    await asyncio.sleep(0)
    assert cut == [True]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, Left, asyncio.CancelledError])
async def test_an_error_of_any_kind_reaches_the_caller_and_leads_to_nothing(kind):
    class Marked(kind):
        pass

    async def fail():
        raise Marked

    gc.collect()
    gc.disable()
    try:
        gone = None
        try:
            await within(30, fail())
        except kind as error:
            gone = weakref.ref(error)

        await asyncio.sleep(0)
        assert gone is not None
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("late", [True, False])
async def test_an_error_after_the_end_is_nobodys(late):
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))

    async def fail_late():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("late") from None

    if late:
        assert await within(0.01, fail_late()) is LATE
    else:
        task = asyncio.create_task(within(30, fail_late()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
