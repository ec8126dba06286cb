from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from ropewalk.kits.aio.channel import Channel
from ropewalk.kits.events import RunFailed


@pytest.mark.parametrize("ended", ["already", "later"])
async def test_a_channel_that_is_left_keeps_no_error(ended):
    class MarkedError(asyncio.CancelledError):
        pass

    channel, gone = Channel(), []

    async def fail():
        try:
            await asyncio.sleep(0)
            raise MarkedError  # noqa: TRY301 - it has to be caught once
        except MarkedError as error:
            gone.append(weakref.ref(error))
            channel.push(RunFailed(error))
            raise

    task = asyncio.create_task(fail())
    gc.collect()
    gc.disable()
    try:
        if ended == "later":
            task.add_done_callback(channel.forget)
            channel.forget(task)  # which is too early

        await asyncio.wait([task])
        if ended == "already":
            assert gone[0]() is not None
            channel.forget(task)

        assert channel.events == []
        assert gone[0]() is None
        assert task.cancelled()
    finally:
        gc.enable()
