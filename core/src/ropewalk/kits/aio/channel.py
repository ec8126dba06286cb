"""Hands a run's events to the consumer of `stream_async`.

Deltas may run ahead of the consumer, up to a bound; boundaries are lock-step: the run goes on only when the consumer
has asked for what comes after them, so that a consumer that cancels on seeing a tool use is obeyed before the tool
runs.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

from ropewalk.kits.events import Event
from ropewalk.types import StreamEvent

_RUN_AHEAD: Final = 128

Streamed: TypeAlias = Event | StreamEvent
"""What is handed over: an event, or a provider's own event where that says everything and nothing need be built."""


class Channel:
    """A queue between one producer and one consumer of the same event loop.

    Attributes:
        events: What was pushed and not yet taken.
        closed: Whether the run is over.
    """

    __slots__ = ("_consumer", "_producer", "closed", "events")

    def __init__(self) -> None:
        self.events: list[Streamed] = []
        self._consumer: asyncio.Future[None] | None = None
        self._producer: asyncio.Future[None] | None = None
        self.closed = False

    # -- the run's side --------------------------------------------------------------------------------------------

    def push(self, event: Streamed) -> bool:
        """Adds an event without waiting; True when the producer has run far enough ahead to wait for `drained`."""
        events = self.events
        events.append(event)
        if self._consumer is not None:
            self._wake()

        return len(events) >= _RUN_AHEAD

    def _wake(self) -> None:
        waiting, self._consumer = self._consumer, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def drained(self) -> None:
        """Waits until the consumer has taken everything and asks for more; not when there is no consumer any more."""
        while (self.events or self._consumer is None) and not self.closed:
            self._producer = asyncio.get_running_loop().create_future()
            await self._producer

    def close(self) -> None:
        """Ends the stream: nobody waits here any longer."""
        self.closed = True
        for waiting in (self._producer, self._consumer):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    # -- the consumer's side ---------------------------------------------------------------------------------------

    def take(self) -> list[Streamed]:
        """Everything that is there. Its producer counts it as taken only when `wait` is called again."""
        taken, self.events = self.events, []
        return taken

    async def wait(self) -> bool:
        """Waits for something to take; False at the end."""
        if not self.events and not self.closed:
            self._consumer = asyncio.get_running_loop().create_future()
            producer, self._producer = self._producer, None
            if producer is not None and not producer.done():
                producer.set_result(None)

            await self._consumer

        return bool(self.events)
