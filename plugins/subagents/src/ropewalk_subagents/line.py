"""Calls of a sub-agent that keeps its conversation: one after the other, also from several event loops."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from ropewalk.kits.aio.blocking import held_here

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_guard: Final = threading.Lock()
_lines: Final[WeakKeyDictionary[Agent, Line]] = WeakKeyDictionary()
_waiting: Final[list[_Ticket]] = []


class WouldNeverEndError(Exception):
    """The call would wait for a run that waits for the call."""


class _Ticket:
    """One call in a line: who waits for it, for which agent it waits, and how it is woken up."""

    __slots__ = ("callers", "future", "loop", "wanted")

    def __init__(self, callers: tuple[int, ...], wanted: int) -> None:
        self.callers = callers
        self.wanted = wanted
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()


class Line:
    """The calls that wait for one agent. Not an asyncio lock: that belongs to one event loop."""

    __slots__ = ("_busy", "_tickets")

    def __init__(self) -> None:
        self._busy: asyncio.AbstractEventLoop | None = None  # where the call is whose turn it is
        self._tickets: deque[_Ticket] = deque()

    @contextlib.asynccontextmanager
    async def turn(self, agent: Agent, callers: tuple[int, ...]) -> AsyncIterator[None]:
        """Waits until the call is the first in the line, and leaves it at the end.

        Raises:
            WouldNeverEndError: The agent waits for this call, itself or through others, or its event loop does.
        """
        ticket = _Ticket(callers, id(agent))
        with _guard:
            if _never_ends(ticket) or self._stands_still():
                raise WouldNeverEndError

            if self._busy is not None:
                self._tickets.append(ticket)
                _waiting.append(ticket)
            else:
                self._busy = ticket.loop
                ticket.future.set_result(None)

        try:
            await ticket.future
        except asyncio.CancelledError:
            if not self._forget(ticket):
                self._next()  # it was this call's turn already

            raise

        try:
            yield
        finally:
            self._next()

    def _forget(self, ticket: _Ticket) -> bool:
        """Takes a ticket out of the line; False when it was called up already."""
        with _guard:
            if ticket not in self._tickets:
                return False

            self._tickets.remove(ticket)
            _waiting.remove(ticket)
            return True

    def _next(self) -> None:
        """Calls up the next ticket whose loop still runs."""
        with _guard:
            while self._tickets:
                ticket = self._tickets.popleft()
                _waiting.remove(ticket)
                with contextlib.suppress(RuntimeError):  # its loop is closed, and nobody waits any more
                    ticket.loop.call_soon_threadsafe(_call_up, ticket.future)
                    self._busy = ticket.loop
                    return

            self._busy = None

    def _stands_still(self) -> bool:
        """Whether a call before is in an event loop that waits for this one, a synchronous callback's."""
        held = held_here()
        return bool(held) and any(loop in held for loop in (self._busy, *(each.loop for each in self._tickets)))


def line_of(agent: Agent) -> Line:
    """The line of an agent, whichever tool the calls come through."""
    with _guard:
        line = _lines.get(agent)
        if line is None:
            line = _lines[agent] = Line()

        return line


def _call_up(future: asyncio.Future[None]) -> None:
    if not future.done():  # when it was cancelled meanwhile, the waiting call passes its turn on
        future.set_result(None)


def _never_ends(ticket: _Ticket) -> bool:
    """Whether the wanted agent is one of the callers, or waits in a line for one, and so on."""
    seen: set[int] = set()
    todo = [ticket.wanted]
    while todo:
        agent = todo.pop()
        if agent in ticket.callers:
            return True

        seen.add(agent)
        todo += [other.wanted for other in _waiting if agent in other.callers and other.wanted not in seen]

    return False
