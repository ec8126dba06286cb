"""Worker threads for synchronous bodies: as many as are needed, reused, and never in the way of the interpreter's exit.

asyncio's own default executor has at most cpu + 4 threads, so that synchronous tools that call agents, whose tools
are synchronous again, wait for one another for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_IDLE_SECONDS: Final = 10.0


class _Job:
    """One body and who waits for it. It is emptied on the loop, so that the worker keeps nothing alive."""

    __slots__ = ("body", "error", "future", "loop", "result")

    def __init__(self, body: Callable[[], Any], loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]) -> None:
        self.body: Callable[[], Any] | None = body
        self.loop = loop
        self.future: asyncio.Future[Any] | None = future
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, body: Callable[[], Any]) -> None:
        self.body = None
        try:
            self.result = body()
        except BaseException as raised:  # noqa: BLE001 - it belongs to the caller, SystemExit too
            self.error = raised

        del body
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self.settle)

    def settle(self) -> None:
        future, result, error = self.future, self.result, self.error
        self.future = self.result = self.error = None
        if future is None or future.done():
            return  # the waiter was cancelled: a late result is dropped

        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration | SystemExit | KeyboardInterrupt | asyncio.CancelledError):
            # a future refuses StopIteration, and asyncio lets the others tear down its loop: they travel as values
            future.set_result(_Raised(error))
        else:
            future.set_exception(error)


class _Worker:
    """One thread and its inbox. Daemonic: a body that never returns does not keep the process alive."""

    __slots__ = ("inbox",)

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="ropewalk-worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self.inbox.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                if _retire(self):
                    return

                continue

            if job.body is not None:
                job.run(job.body)

            del job
            _idle.append(self)


_idle: list[_Worker] = []


def _retire(worker: _Worker) -> bool:
    """Takes an idle worker off the list; False when somebody has just picked it."""
    try:
        _idle.remove(worker)
    except ValueError:
        return False

    return True


def _hire() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:
        return _Worker()


class _Raised:
    """Carries an exception that a future cannot."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def in_thread(body: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Runs a synchronous function in a worker thread, with a copy of the caller's context variables.

    When the waiting task is cancelled, the thread goes on and its late result is dropped.

    Raises:
        BaseException: Whatever the function raises.
        RuntimeError: The function raised StopIteration, which cannot leave a coroutine.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    _hire().inbox.put(_Job(lambda: context.run(body, *args, **kwargs), loop, future))
    try:
        result = await future
    finally:
        del future  # it holds the error, whose frames hold this one

    if type(result) is _Raised:
        error, result = result.error, None
        try:
            if isinstance(error, StopIteration):
                message = "the function raised StopIteration: raise another exception instead"
                raise RuntimeError(message) from error  # noqa: TRY004 - what a coroutine raises in its place

            raise error
        finally:
            del error  # or the error's own frame would refer to it

    return result  # type: ignore[no-any-return]


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_idle.clear)
