"""Calls with idempotency tokens, from their start until they are forgotten, and those who wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from ropewalk import AgentResult
from ropewalk.kits.aio.blocking import held_here
from ropewalk.kits.aio.seam import current_seam
from ropewalk_concurrency.errors import IdempotencyAbortedError

Outcome: TypeAlias = AgentResult | BaseException

_POLL_SECONDS: Final = 0.05
_graph = threading.Lock()  # guards who waits for whom, across agents


class Flight:
    """One call with a token. Its book's lock guards it.

    Attributes:
        token: The token.
        call: The id of its run. Not the call's options: they may lead to the agent, and a flight is kept for it.
        started: Whether the call is in the hands of the hooks, from where its end is always told.
        result: Its result once it has one.
        failure: What it came to instead; a text, since an error would keep its frames and the agent alive.
        ended: When, on the clock of runs.
        waits_for: The flights that code within this call waits for.
        loop: Where it runs; None once it has ended.
    """

    __slots__ = ("call", "ended", "failure", "loop", "result", "seats", "started", "token", "waits_for")

    def __init__(
        self, token: Any, call: str, loop: asyncio.AbstractEventLoop | None = None, *, started: bool = True
    ) -> None:
        self.token = token
        self.call = call
        self.started = started
        self.loop = loop
        self.result: AgentResult | None = None
        self.failure: str | None = None
        self.ended: float | None = None
        self.waits_for: list[Flight] = []
        self.seats: list[Seat] = []

    def end(self, outcome: Outcome) -> None:
        """Notes the end, and hands it to those who wait."""
        self.ended = current_seam().monotonic()
        self.loop = None
        if isinstance(outcome, AgentResult):
            self.result = outcome
        else:
            self.failure = type(outcome).__name__

        seats, self.seats = self.seats, []
        for seat in seats:
            seat.hand_over(outcome)


class Seat:
    """Where one caller waits for the end of a flight, in its own event loop. Made under the book's lock."""

    __slots__ = ("_future", "_loop", "_outcome", "flight")

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()
        self._outcome: Outcome | None = None
        flight.seats.append(self)

    def hand_over(self, outcome: Outcome) -> None:
        """Ends the wait; from any thread."""
        self._outcome = outcome
        with contextlib.suppress(RuntimeError):  # its loop is closed, and nobody waits there any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, alive: Callable[[], bool]) -> AgentResult | None:
        """Waits for the end.

        Args:
            alive: Whether the call is under way. Asked as long as it has not started.

        Returns:
            The result; None when the call waits, itself or through others, for the very caller, also for the event
            loop that the caller holds.

        Raises:
            IdempotencyAbortedError: The call was aborted.
            Exception: What it raised.
        """
        here = _inside.get()
        if self.flight.loop in held_here() or not _begin_wait(here, self.flight):
            return None

        try:
            while not (self.flight.started or self._future.done()):
                await asyncio.wait([self._future], timeout=_POLL_SECONDS)
                if not (self.flight.started or self._future.done() or alive()):
                    raise aborted("ended before it began")

            await self._future
        finally:
            _end_wait(here, self.flight)

        return self._settled()

    def _settled(self) -> AgentResult:
        outcome, self._outcome = self._outcome, None
        try:
            if isinstance(outcome, AgentResult):
                return outcome

            if isinstance(outcome, Exception):
                raise outcome

            raise aborted(f"was ended by {type(outcome).__name__}")
        finally:
            del outcome  # or the error's own frame would refer to it


def aborted(how: str) -> IdempotencyAbortedError:
    """The error for those who repeat a call that came to nothing."""
    return IdempotencyAbortedError(f"the call with the same idempotency token {how}, without a result: call again")


# -- calls within calls ------------------------------------------------------------------------------------------

_inside: ContextVar[tuple[Flight, ...]] = ContextVar("ropewalk_concurrency", default=())


class Inside:
    """The length of a call: code in it, and what that calls, is known to be part of it."""

    __slots__ = ("_flight", "_token")

    def __init__(self, flight: Flight) -> None:
        self._flight = flight

    def __enter__(self) -> None:
        self._token = _inside.set((*_inside.get(), self._flight))

    def __exit__(self, *_: object) -> None:
        _inside.reset(self._token)


def _begin_wait(here: tuple[Flight, ...], flight: Flight) -> bool:
    with _graph:
        if _leads_to(flight, here):
            return False

        for each in here:
            each.waits_for.append(flight)

        return True


def _end_wait(here: tuple[Flight, ...], flight: Flight) -> None:
    with _graph:
        for each in here:
            each.waits_for.remove(flight)


def _leads_to(flight: Flight, here: tuple[Flight, ...]) -> bool:
    """Whether the flight is one of those, or waits for one of them."""
    seen: list[Flight] = []
    todo = [flight]
    while todo:
        each = todo.pop()
        if each in here:
            return True

        if each not in seen:
            seen.append(each)
            todo.extend(each.waits_for)

    return False
