"""Hands a run's events to the consumer of `stream_async`.

Deltas may run ahead of the consumer, up to a bound; boundaries are lock-step: the run goes on only when the consumer
has asked for what comes after them, so that a consumer that cancels on seeing a tool use is obeyed before the tool
runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ropewalk.kits.events import Event
from ropewalk.types import StreamEvent

_RUN_AHEAD: Final = 224  # three dicts a delta: one more batch and the collector would look at each

Streamed: TypeAlias = Event | StreamEvent
"""What is handed over: an event, or a provider's own event where that says everything and nothing need be built."""


class Channel:
    """A queue between one producer and one consumer of the same event loop.

    Attributes:
        events: What was pushed and not yet taken.
        push: Adds an event without waiting; True when the producer has run far enough ahead to wait for `drained`.
        closed: Whether the run is over.
    """

    __slots__ = ("_consumer", "_producer", "closed", "events", "push")

    def __init__(self) -> None:
        self.events: list[Streamed] = []
        self._consumer: list[asyncio.Future[None]] = []  # the one that waits, if any
        self._producer: asyncio.Future[None] | None = None
        self.push = _pusher(self.events, self._consumer)
        self.closed = False

    # -- the run's side --------------------------------------------------------------------------------------------

    async def drained(self) -> None:
        """Waits until the consumer has taken everything and asks for more; not when there is no consumer any more."""
        while (self.events or not self._consumer) and not self.closed:
            self._producer = asyncio.get_running_loop().create_future()
            await self._producer

    def close(self) -> None:
        """Ends the stream: nobody waits here any longer."""
        self.closed = True
        for waiting in (self._producer, *self._consumer):
            _settle(waiting)

    # -- the consumer's side ---------------------------------------------------------------------------------------

    def take(self) -> list[Streamed]:
        """Everything that is there. Its producer counts it as taken only when `wait` is called again."""
        taken = self.events[:]
        self.events.clear()
        return taken

    def forget(self, task: asyncio.Task[Any]) -> None:
        """The consumer goes: the error in the last event, or in the task, must not keep the run and the agent."""
        self.events.clear()
        if task.done():
            with contextlib.suppress(asyncio.CancelledError):
                task.exception()

    async def wait(self) -> bool:
        """Waits for something to take; False at the end."""
        if not self.events and not self.closed:
            waiting = asyncio.get_running_loop().create_future()
            self._consumer[:] = [waiting]
            producer, self._producer = self._producer, None
            _settle(producer)
            await waiting

        return bool(self.events)


def _pusher(events: list[Streamed], consumer: list[asyncio.Future[None]]) -> Callable[[Streamed], bool]:
    """`Channel.push`: a closure, which costs half of a method's call and is called for every delta."""
    append = events.append

    def push(event: Streamed) -> bool:
        append(event)
        if consumer:
            _settle(consumer.pop())

        return len(events) >= _RUN_AHEAD

    return push


def _settle(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
