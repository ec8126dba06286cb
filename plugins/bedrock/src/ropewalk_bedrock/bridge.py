"""Brings a blocking stream into an event loop: a worker thread reads, and the loop is woken once for all that came."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, TypeVar

from ropewalk.kits.aio.threads import in_thread

T = TypeVar("T")

_END: Final = object()


class Handover(Generic[T]):
    """Where the worker puts items. One thread puts, one loop takes; neither waits for the other."""

    __slots__ = ("_items", "_loop", "_waiter", "_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[object] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._woken = False

    def put(self, item: object) -> None:
        """Hands one item over; from the worker."""
        self._items.append(item)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> deque[object]:
        """Waits until there is an item; the caller takes items from the left until there is none."""
        self._woken = False  # before looking: what is put from here on wakes again
        while not self._items:
            self._waiter = self._loop.create_future()
            self._woken = False
            if not self._items:
                await self._waiter

        self._waiter = None
        return self._items


async def from_thread(read: Callable[[Callable[[T], None]], None], stop: Callable[[], None]) -> AsyncIterator[T]:
    """Runs `read` in a worker thread and yields what it hands over.

    Closing or cancelling the iterator calls `stop` and returns at once, whatever the worker waits for.

    Args:
        read: The blocking work; called with the function that takes one item.
        stop: Makes the work end soon; called from the loop's thread when nobody wants the rest.

    Raises:
        BaseException: Whatever `read` raises, after the items that came before.
    """
    handover: Handover[T] = Handover(asyncio.get_running_loop())

    def work() -> BaseException | None:
        try:
            read(handover.put)
        except BaseException as error:  # noqa: BLE001 - a value up to the consumer: asyncio's tasks take exits amiss
            return error
        else:
            return None
        finally:
            handover.put(_END)

    task: asyncio.Future[BaseException | None] | None = asyncio.ensure_future(in_thread(work))
    ended = False
    try:
        while not ended:
            items = await handover.wait()
            while items:
                item = items.popleft()
                if item is _END:
                    ended = True
                    break

                yield item  # type: ignore[misc]

        waiting, task = task, None
        error = await waiting if waiting is not None else None
        waiting = None  # it holds the error, whose frames hold this one
        if error is not None:
            try:
                raise error
            finally:
                error = None
    finally:
        if not ended:
            stop()

        if task is not None:
            task.cancel()
