"""The synchronous facade: runs invocations on a background event loop that lives as long as the process.

One loop for all calls, so that model clients keep their connections. A call from the loop's own thread (a synchronous
hook, a callback) would wait for itself: it runs on the next loop, and so on, as deep as calls are nested.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

logger = logging.getLogger("ropewalk.blocking")

_POLL_SECONDS: Final = 0.5  # a wait without end cannot be interrupted by ctrl-C on every platform
_GRACE_SECONDS: Final = 1.0


class _LoopThread:
    """An event loop in a daemon thread. `blocked` counts synchronous calls that hold its thread."""

    __slots__ = ("blocked", "loop", "thread")

    def __init__(self, depth: int) -> None:
        self.blocked = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name=f"ropewalk-loop-{depth}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        running = True
        while running:
            try:
                self.loop.run_forever()
                running = False
            except (SystemExit, KeyboardInterrupt):
                # of a task that somebody's code started: whoever awaits it gets it, and all other runs go on
                logger.warning(
                    "a task on the loop of synchronous calls ended in an exit; the loop goes on", exc_info=True
                )


class _Hold:
    """A synchronous call that holds the event loop which it was made in, until it is over."""

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop | None = loop


_holds: ContextVar[tuple[_Hold, ...]] = ContextVar("ropewalk_holds", default=())


def held_here() -> list[asyncio.AbstractEventLoop]:
    """The event loops that stand still until the code at hand is done: who waits for a run on one waits for ever."""
    return [hold.loop for hold in _holds.get() if hold.loop is not None]


class _Call(Generic[T]):
    """One synchronous call: where its end is left for the waiting thread."""

    __slots__ = ("done", "error", "result")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: T | None = None
        self.error: BaseException | None = None

    async def settle(self, work: Coroutine[Any, Any, T]) -> None:
        done = self.done
        try:
            self.result = await work
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread; a task must not raise it
            self.error = error
        finally:
            del self  # nobody takes the error after ctrl-C, and its own frame must not refer to it
            done.set()


_loops: list[_LoopThread] = []
_guard = threading.Lock()


def run_blocking(start: Callable[[], Coroutine[Any, Any, T]], cancel: Callable[[], None]) -> T:
    """Runs a coroutine to its end while the calling thread waits.

    Args:
        start: Makes the coroutine; called on the loop's thread, in a copy of the caller's context.
        cancel: Asks the work to stop; called on ctrl-C. The work then gets a second before KeyboardInterrupt goes on.

    Raises:
        BaseException: Whatever the coroutine raises, SystemExit and KeyboardInterrupt too.
    """
    here = threading.current_thread()
    own, target = _choose(here)
    context = contextvars.copy_context()
    hold = _Hold(running) if (running := _running_loop()) is not None else None
    if hold is not None:
        context.run(_holds.set, (*_holds.get(), hold))

    call: _Call[T] = _Call()
    tasks: list[asyncio.Task[None]] = []  # the loop itself keeps only weak references

    def submit() -> None:
        tasks.append(target.loop.create_task(call.settle(start()), context=context))

    if own is not None:
        own.blocked += 1

    try:
        _hand_over(lambda: target.loop.call_soon_threadsafe(submit), call, cancel)
    finally:
        if own is not None:
            own.blocked -= 1

        if hold is not None:
            hold.loop = None

    error, call.error = call.error, None
    try:
        if error is not None:
            raise error

        return call.result  # type: ignore[return-value]
    finally:
        error = None  # or the traceback would refer to itself


def _hand_over(submit: Callable[[], object], call: _Call[Any], cancel: Callable[[], None]) -> None:
    """Submits and waits; ctrl-C at any moment in between reaches the work too."""
    caller = _running_task()
    before = caller.cancelling() if caller is not None else 0
    try:
        submit()
        while not call.done.wait(_POLL_SECONDS):
            # asyncio.run answers ctrl-C by cancelling its main task, which cannot notice while it is blocked here
            if caller is not None and caller.cancelling() > before:
                cancel()
                call.done.wait(_GRACE_SECONDS)
                raise asyncio.CancelledError
    except KeyboardInterrupt:
        cancel()
        call.done.wait(_GRACE_SECONDS)
        raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _choose(here: threading.Thread) -> tuple[_LoopThread | None, _LoopThread]:
    """The loop that `here` is the thread of, if any, and the first loop whose thread is free to work."""
    with _guard:
        own = next((loop for loop in _loops if loop.thread is here), None)
        for loop in _loops:
            if loop is not own and not loop.blocked:
                return own, loop

        fresh = _LoopThread(len(_loops))
        _loops.append(fresh)
        return own, fresh


def _forget_loops() -> None:
    """After a fork the threads are gone: start anew."""
    global _guard  # noqa: PLW0603 - the lock may have been held by a thread that does not exist here
    _guard = threading.Lock()
    _loops.clear()


@atexit.register
def _stop_loops() -> None:
    for running in _loops:
        try:
            running.loop.call_soon_threadsafe(running.loop.stop)
        except RuntimeError:
            continue

        running.thread.join(_GRACE_SECONDS)
        if not running.thread.is_alive():
            running.loop.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_loops)
