"""Brings what a blocking worker produces into an event loop, and ends the worker with its consumer."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

T = TypeVar("T")

Emit = Callable[[T], bool]
"""Hands one item over and tells whether the consumer is gone."""
Work = Callable[[Emit[T], Callable[[], bool]], None]
"""Called with `emit` and `stopped`; both tell whether to end."""

_EXIT_SECONDS: Final = 5.0
_live: dict[threading.Thread, threading.Event] = {}


class _End(Generic[T]):
    """The worker's last word."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


async def from_thread(work: Work[T], name: str) -> AsyncIterator[T]:
    """Runs `work` in a thread and yields what it emits.

    Closing or cancelling the iterator returns at once; the worker sees it at its next `emit` or `stopped`.

    Args:
        work: The blocking work.
        name: Name of the thread.

    Raises:
        BaseException: Whatever the work raises.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[T | _End[T]] = asyncio.Queue()
    stop = threading.Event()

    def put(item: T | _End[T]) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # the loop is closed
            stop.set()

    def emit(item: T) -> bool:
        put(item)
        return stop.is_set()

    def body() -> None:
        error: BaseException | None = None
        try:
            work(emit, stop.is_set)
        except BaseException as caught:  # noqa: BLE001 - raised again where it is awaited
            error = caught
        finally:
            _live.pop(threading.current_thread(), None)
            put(_End(error))

    # A thread per answer, not a pool: it lives for seconds, and as a daemon it cannot keep the interpreter from ending.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), name=name, daemon=True)
    _live[thread] = stop
    thread.start()
    try:
        while not isinstance(item := await queue.get(), _End):
            yield item

        if item.error is not None:
            raise item.error
    finally:
        stop.set()


def _end_all() -> None:
    """At exit: a thread that came back from C++ into a finalized interpreter would crash the process."""
    for stop in list(_live.values()):
        stop.set()

    deadline = time.monotonic() + _EXIT_SECONDS
    for thread in list(_live):
        with suppress(RuntimeError):
            thread.join(max(0.0, deadline - time.monotonic()))


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_live.clear)
