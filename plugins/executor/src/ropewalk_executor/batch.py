"""Runs several tool calls at once, and sees every one of them to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from ropewalk.tools import ToolCall
from ropewalk.types import ToolResult

RunTool: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]


class Batch:
    """The calls of one model message under way: a task each, at most `limit` alive, the rest not yet made.

    What `run_tool` raises is noted, not raised in its task: asyncio lets SystemExit tear down the whole loop. Nothing
    is started after that. A suspension (a BaseException that is no Exception, no cancellation and none of
    SystemExit and KeyboardInterrupt) lets the calls that run come to their end; anything else cancels them.
    """

    __slots__ = (
        "_aborted",
        "_all_ended",
        "_calls",
        "_cancelled",
        "_errors",
        "_limit",
        "_next",
        "_results",
        "_run_tool",
        "_tasks",
    )

    def __init__(self, calls: tuple[ToolCall, ...], run_tool: RunTool, limit: int) -> None:
        self._calls = calls
        self._run_tool = run_tool
        self._limit = limit
        self._next = 0
        self._results: dict[int, ToolResult] = {}
        self._errors: dict[int, BaseException] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}  # the loop itself refers to tasks weakly
        self._all_ended: asyncio.Future[None] | None = None
        self._cancelled: asyncio.CancelledError | None = None
        self._aborted = False

    async def run(self) -> list[ToolResult]:
        """The results in the order of the calls, when every task has ended.

        Raises:
            BaseException: What a call raised; a cancellation of the caller; see the class for which of several.
        """
        loop = asyncio.get_running_loop()
        self._fill()
        while self._tasks:
            self._all_ended = loop.create_future()  # a cancellation of the caller cancels what it waits for
            try:
                await self._all_ended
            except asyncio.CancelledError as error:
                self._cancelled = error
                self._abort()

        if self._errors or self._cancelled:
            self._raise()

        return [self._results[index] for index in range(len(self._calls))]

    def _fill(self) -> None:
        """Starts calls while there is room."""
        while self._next < len(self._calls) and len(self._tasks) < self._limit:
            task = asyncio.create_task(self._one(self._next), name=f"tool {self._calls[self._next].tool_use['name']}")
            self._tasks[task] = None
            task.add_done_callback(self._ended)
            self._next += 1

    async def _one(self, index: int) -> None:
        try:
            self._results[index] = await self._run_tool(self._calls[index])
        except BaseException as error:  # noqa: BLE001 - raised again by `run`, in the caller's task
            self._errors[index] = error
            if not is_suspension(error) and not self._aborted:  # once: the others may be cleaning up by now
                self._abort()

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if task.cancelled() and not self._aborted:
            # by a stranger, before it began: afterwards it notes what is raised in it
            self._cancelled = asyncio.CancelledError()
            self._abort()

        if not self._errors and not self._aborted:
            self._fill()

        if not self._tasks and self._all_ended is not None and not self._all_ended.done():
            self._all_ended.set_result(None)

    def _abort(self) -> None:
        self._aborted = True
        for task in self._tasks:
            task.cancel()  # to the one that is just ending it makes no difference

    def _raise(self) -> NoReturn:
        errors, self._errors = self._errors, {}  # what is raised must not lead back to itself
        error = _chosen(errors, self._cancelled)
        self._cancelled = None
        notes = [self._note(index, errors[index]) for index in sorted(errors) if errors[index] is not error]
        for note in filter(None, notes):
            error.add_note(note)

        try:
            raise error
        finally:
            del error, errors

    def _note(self, index: int, other: BaseException) -> str | None:
        """What is told of an error that gives way to another one."""
        if isinstance(other, asyncio.CancelledError):
            return None

        use, shown = self._calls[index].tool_use, f"{type(other).__name__}: {other}".removesuffix(": ")
        return f"the call {use['toolUseId']!r} of {use['name']!r} in the same message raised {shown}"


def _chosen(errors: dict[int, BaseException], cancelled: asyncio.CancelledError | None) -> BaseException:
    """The error that counts: what leaves the loop, the caller's cancellation, the first failure, the first suspension.

    Failures are compared by time, as later ones may be due to the first, suspensions by their place in the request.
    """
    for error in errors.values():
        if isinstance(error, SystemExit | KeyboardInterrupt):
            return error

    if cancelled is not None:
        return cancelled

    for error in errors.values():
        if not is_suspension(error):
            return error

    return errors[min(errors)]


def is_suspension(error: BaseException) -> bool:
    """Whether the error pauses the run rather than ends it."""
    return not isinstance(error, Exception | asyncio.CancelledError | GeneratorExit | SystemExit | KeyboardInterrupt)
