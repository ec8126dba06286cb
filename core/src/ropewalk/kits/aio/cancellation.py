"""How `agent.cancel()` reaches a run, wherever it is.

The run's tasks are interrupted only while they are parked: inside a model call, a tool, a hook or a wait. The
interruption is claimed where it arrives and turned into a value; a cancellation from outside (a task that somebody
cancelled, a timeout) is never claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Final

_GRACE_SECONDS: Final = 1.0


class Cancellation:
    """The cancel state of one run. `request` may be called from any thread."""

    __slots__ = ("_aside", "_interrupted", "_over", "_parked", "_signal", "_timer", "loop", "requested")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requested = False
        self.loop = loop
        self._aside: dict[asyncio.Task[object], int | None] = {}  # with what stood in `_parked`
        self._parked: dict[asyncio.Task[object], int] = {}  # with the cancellations that others had asked for before
        self._interrupted: dict[asyncio.Task[object], int] = {}  # with how often, since the last claim
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self._signal: threading.Event | None = None

    @property
    def signal(self) -> threading.Event:
        """Set once the run is cancelled, for code in threads."""
        if self._signal is None:
            self._signal = threading.Event()
            if self.requested:
                self._signal.set()

        return self._signal

    def request(self) -> None:
        """Asks the run to stop. Calling it again changes nothing."""
        self.requested = True
        if self._signal is not None:
            self._signal.set()

        with contextlib.suppress(RuntimeError):  # the loop is closed, and the run with it
            self.loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        if not self._over:
            self.interrupt_parked()
            self._timer = self._timer or self.loop.call_later(_GRACE_SECONDS, self._insist)

    def _insist(self) -> None:
        """Interrupts whoever still waits, or waits again, a second later: a cancelled run always ends."""
        for task in {*self._parked, *self._aside}:
            self._stop(task)

        self._timer = self.loop.call_later(_GRACE_SECONDS, self._insist)

    def _stop(self, task: asyncio.Task[object]) -> None:
        self._interrupted[task] = self._interrupted.get(task, 0) + 1
        task.cancel()

    def end(self) -> None:
        """The run is over: nobody is interrupted any more, and the current task is as it was before."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

        self.settle()

    # Below, no task is the current one. Frames of a run should not hold it: it keeps the CancelledError that ends it,
    # and that its frames, until somebody fetches it, which a TaskGroup never does.

    def put_aside(self, task: asyncio.Task[object] | None = None) -> bool:
        """Unparks a task that waits for others; a cancel gives those a second first. True when it was parked."""
        task = task or asyncio.current_task()
        if task is None:
            return False

        before = self._aside[task] = self._parked.pop(task, None)
        return before is not None

    def take_back(self, task: asyncio.Task[object] | None = None, *, parked: bool) -> None:
        """Ends `put_aside`, whose answer is `parked`."""
        task = task or asyncio.current_task()
        before = self._aside.pop(task, None) if task is not None else None
        if task is not None and parked:
            self._park(task, before)

    def interrupt_parked(self, but: asyncio.Task[object] | None = None) -> None:
        """Interrupts every parked task, except `but`. On the run's loop only."""
        for task in list(self._parked):
            if task is not but and task not in self._interrupted:
                self._stop(task)

    def park(self, task: asyncio.Task[object] | None = None) -> bool:
        """Allows interruptions of the task; True when it was not parked before and `unpark` is due."""
        task = task or asyncio.current_task()
        if task is None or task in self._parked:
            return False

        self._park(task, self._aside.get(task))
        return True

    def _park(self, task: asyncio.Task[object], before: int | None) -> None:
        # What others have asked for since the task was parked first is theirs, also while it was not parked.
        self._parked[task] = self._of_others(task) if before is None else before

    @contextlib.contextmanager
    def sheltered(self) -> Iterator[None]:
        """Forbids interruptions of the current task in the block."""
        task = asyncio.current_task()
        before = self._parked.pop(task, None) if task is not None else None
        try:
            yield
        finally:
            if task is not None and before is not None:
                self._park(task, before)

    def is_parked(self, task: asyncio.Task[object]) -> bool:
        """Whether interruptions of the task are allowed."""
        return task in self._parked

    def unpark(self, task: asyncio.Task[object] | None = None) -> None:
        """Forbids interruptions of the task."""
        task = task or asyncio.current_task()
        if task is not None:
            self._parked.pop(task, None)

    def claim(self) -> bool:
        """Whether the CancelledError in hand is the run's own interruption of this task, and nobody else's.

        Call it where the error was caught; when it answers False the error must be raised again.
        """
        task = asyncio.current_task()
        if task is None or task not in self._interrupted:
            return False

        left = task.cancelling()
        for _ in range(self._interrupted.pop(task)):
            left = task.uncancel()

        return left <= self._parked.get(task, 0)

    def __enter__(self) -> None:
        """Begins a block that the run's own interruption of this task ends, and nothing more."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, asyncio.CancelledError) and self.claim()

    def comes_from_outside(self) -> bool:
        """Whether somebody else has cancelled the current task since it was parked."""
        task = asyncio.current_task()
        return task is not None and self._of_others(task) > self._parked.get(task, 0)

    def settle(self) -> None:
        """Takes back an interruption of the current task that a tool, a model or a hook has swallowed."""
        if self._interrupted:
            self.claim()

    def _of_others(self, task: asyncio.Task[object]) -> int:
        return task.cancelling() - self._interrupted.get(task, 0)
