"""Hands a run's events to the consumer of `stream_async`.

Deltas may run ahead of the consumer, up to a bound; boundaries are lock-step: the run goes on only when the consumer
has asked for what comes after them, so that a consumer that cancels on seeing a tool use is obeyed before the tool runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ropewalk.events import Event

_RUN_AHEAD: Final = 1024


class Channel:
    """A queue between one producer and one consumer of the same event loop."""

    __slots__ = ("_consumer", "_events", "_producer", "closed")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._consumer: asyncio.Future[None] | None = None
        self._producer: asyncio.Future[None] | None = None
        self.closed = False

    # -- the run's side --------------------------------------------------------------------------------------------

    def push(self, event: Event) -> None:
        """Adds an event without waiting."""
        self._events.append(event)
        waiting = self._consumer
        if waiting is not None:
            self._consumer = None
            if not waiting.done():
                waiting.set_result(None)

    @property
    def full(self) -> bool:
        """Whether the producer has run far enough ahead to wait for `drained`."""
        return len(self._events) >= _RUN_AHEAD

    async def drained(self) -> None:
        """Waits until the consumer has taken everything and asks for more; at once when there is no consumer any more."""
        while (self._events or self._consumer is None) and not self.closed:
            self._producer = asyncio.get_running_loop().create_future()
            await self._producer

    def close(self) -> None:
        """Ends the stream: nobody waits here any longer."""
        self.closed = True
        for waiting in (self._producer, self._consumer):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    # -- the consumer's side ---------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the stream is closed and everything was taken."""
        return self.closed and not self._events

    def take(self) -> deque[Event]:
        """Everything that is there, without waiting."""
        taken, self._events = self._events, deque()
        return taken

    async def wait(self) -> None:
        """Waits for something to take, or for the end."""
        if self._events or self.closed:
            return

        self._consumer = asyncio.get_running_loop().create_future()
        producer, self._producer = self._producer, None
        if producer is not None and not producer.done():
            producer.set_result(None)

        await self._consumer
