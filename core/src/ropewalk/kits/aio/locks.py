"""A lock for code that runs in several event loops at once: asyncio's own belongs to one of them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TypeAlias

_Ticket: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class Lock:
    """As `asyncio.Lock`: first come, first served; whoever waits lets its loop go on."""

    __slots__ = ("_guard", "_held", "_tickets")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._tickets: deque[_Ticket] = deque()

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._held

    async def __aenter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return

            loop = asyncio.get_running_loop()
            ticket = (loop, loop.create_future())
            self._tickets.append(ticket)

        try:
            await ticket[1]
        except BaseException:  # a cancellation, or the coroutine is closed
            if not self._forget(ticket):
                self._next()  # it was this one's turn already

            raise

    async def __aexit__(self, *_: object) -> None:
        self._next()

    def _forget(self, ticket: _Ticket) -> bool:
        with self._guard:
            if ticket not in self._tickets:
                return False

            self._tickets.remove(ticket)
            return True

    def _next(self) -> None:
        with self._guard:
            while self._tickets:
                loop, future = self._tickets.popleft()
                try:
                    loop.call_soon_threadsafe(_call_up, future)
                except RuntimeError:  # the loop is closed, and nobody waits there any more
                    continue

                return

            self._held = False


def _call_up(future: asyncio.Future[None]) -> None:
    if not future.done():  # who was cancelled meanwhile passes its turn on
        future.set_result(None)
