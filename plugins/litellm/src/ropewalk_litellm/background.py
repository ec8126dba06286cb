"""One event loop for all calls, in a thread that lives as long as the process.

LiteLLM keeps its clients by event loop, starts tasks that outlive the call, imports for seconds and counts tokens
between two pieces of an answer. On the caller's loop that means connections that die with it, tasks that are lost and
a loop that stands still. Here connections are reused, whatever loop an agent runs on, and callers only wait.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Put: TypeAlias = Callable[[T], None]
"""Hands one item over to the caller."""

_CLOSE_SECONDS: Final = 0.5  # the kernel gives a stream one second to close
_EXIT_SECONDS: Final = 2.0


class _Background:
    """The loop and its thread, a daemon: it cannot keep the interpreter from ending."""

    __slots__ = ("loop", "thread")

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="ropewalk-litellm", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        running = True
        while running:
            try:
                self.loop.run_forever()
                running = False
            except (SystemExit, KeyboardInterrupt):  # of a callback of the user's: its call gets it, others go on
                continue

    def stop(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)

        self.thread.join(_EXIT_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


class _End:
    """The work's last word."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Mailbox(Generic[T]):
    """Brings items from the background to the caller's loop; what comes in quick succession wakes it once."""

    __slots__ = ("_items", "_loop", "_scheduled", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[T | _End] = deque()
        self._scheduled = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: T | _End) -> None:
        self._items.append(item)  # before the look at the flag: whoever clears it finds the item
        if not self._scheduled:
            self._scheduled = True
            with suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake)

    async def take(self) -> list[T | _End]:
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter

        return [self._items.popleft() for _ in range(len(self._items))]

    def _wake(self) -> None:
        self._scheduled = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_guard = threading.Lock()
_running: list[_Background] = []


def _background() -> _Background:
    with _guard:
        if not _running:
            _running.append(_Background())

        return _running[0]


async def in_background(work: Callable[[Put[T]], Coroutine[Any, Any, None]]) -> AsyncIterator[T]:
    """Runs `work` on the background loop, in a copy of the caller's context, and yields what it puts.

    Closing or cancelling the iterator cancels the work, and gives it half a second to let go of its connection.

    Raises:
        BaseException: Whatever the work raises.
    """
    box: _Mailbox[T] = _Mailbox()
    loop = _background().loop
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[None]] = []

    def ended(task: asyncio.Task[None]) -> None:
        cancelled = task.cancelled()
        box.put(_End(asyncio.CancelledError() if cancelled else task.exception()))
        tasks.clear()

    def start() -> None:
        task = loop.create_task(work(box.put), context=context)
        tasks.append(task)
        task.add_done_callback(ended)

    def cancel() -> None:
        for task in tasks:
            task.cancel()

    loop.call_soon_threadsafe(start)
    end: _End | None = None
    try:
        while end is None:
            for item in await box.take():
                if isinstance(item, _End):
                    end = item
                else:
                    yield item
    finally:
        if end is None:
            loop.call_soon_threadsafe(cancel)
            with suppress(TimeoutError):
                await asyncio.wait_for(_end_of(box), _CLOSE_SECONDS)

    if end.error is not None:
        try:
            raise end.error
        finally:
            del end, box  # or the error's own frame would refer to it


async def _end_of(box: _Mailbox[Any]) -> None:
    while not any(isinstance(item, _End) for item in await box.take()):
        pass


def run_and_wait(work: Callable[[], Awaitable[Any]], seconds: float = _EXIT_SECONDS) -> None:
    """Runs something on the background loop and waits for it; does nothing when there is no such loop."""
    if not _running:
        return

    async def body() -> None:
        await work()

    future = asyncio.run_coroutine_threadsafe(body(), _running[0].loop)
    future.result(seconds)


def stop() -> None:
    """Ends the loop; the next call starts another."""
    with _guard:
        stopped, _running[:] = list(_running), []

    for background in stopped:
        background.stop()


def _forget() -> None:
    """After a fork the thread is gone: start anew."""
    global _guard  # noqa: PLW0603 - the lock may have been held by a thread that does not exist here
    _guard = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
