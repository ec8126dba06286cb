"""Calls with idempotency tokens, from their start until they are forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from ropewalk import AgentResult
from ropewalk.kits.aio.seam import current_seam
from ropewalk_concurrency.errors import IdempotencyAbortedError

if TYPE_CHECKING:
    from ropewalk.invocation import CallOptions

Outcome = AgentResult | BaseException

_POLL_SECONDS: Final = 0.05
_graph = threading.Lock()  # guards who waits for whom, across agents


class Flight:
    """One call with a token.

    Attributes:
        token: The token.
        options: The call's options; one object per call, so it tells calls apart.
        started: Whether the call is in the hands of the hooks, from where its end is always told.
        result: Its result once it has one.
        failure: What it came to instead; a text, since an error would keep its frames and the agent alive.
        ended: When, on the clock of runs.
        waits_for: The flights that code within this call waits for.
    """

    __slots__ = ("_waiting", "ended", "failure", "options", "result", "started", "token", "waits_for")

    def __init__(self, token: Any, options: CallOptions) -> None:
        self.token = token
        self.options = options
        self.started = False
        self.result: AgentResult | None = None
        self.failure: str | None = None
        self.ended: float | None = None
        self.waits_for: list[Flight] = []
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Outcome]]] = []

    def end(self, outcome: Outcome) -> None:
        """Notes the end and hands it to those who wait, in whatever event loops. Called under the book's lock."""
        self.ended = current_seam().monotonic()
        if isinstance(outcome, AgentResult):
            self.result = outcome
        else:
            self.failure = type(outcome).__name__

        waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            with contextlib.suppress(RuntimeError):  # its loop is closed, and nobody waits there any more
                loop.call_soon_threadsafe(_hand_over, future, outcome)

    def seat(self) -> asyncio.Future[Outcome]:
        """Where a caller in the running event loop waits for the end. Called under the book's lock."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((loop, future))
        return future

    def leave(self, future: asyncio.Future[Outcome]) -> None:
        """Gives a seat up."""
        self._waiting = [entry for entry in self._waiting if entry[1] is not future]


def _hand_over(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


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


async def wait_for(flight: Flight, seat: asyncio.Future[Outcome], alive: Callable[[], bool]) -> AgentResult | None:
    """Waits for the end of a flight.

    Args:
        flight: Which.
        seat: The caller's seat in it.
        alive: Whether the call is under way. Asked as long as it has not started.

    Returns:
        Its result; None when it waits, itself or through others, for the caller.

    Raises:
        IdempotencyAbortedError: It was aborted.
        Exception: What it raised.
    """
    here = _inside.get()
    if not _begin_wait(here, flight):
        return None

    try:
        while not flight.started and not seat.done():
            await asyncio.wait([seat], timeout=_POLL_SECONDS)
            if not flight.started and not seat.done() and not alive():
                raise aborted("ended before it began")

        outcome: Outcome | None = await seat
    finally:
        _end_wait(here, flight)
        flight.leave(seat)

    try:
        if isinstance(outcome, AgentResult):
            return outcome

        if isinstance(outcome, Exception):
            raise outcome

        raise aborted(f"was ended by {type(outcome).__name__}")
    finally:
        del outcome, seat  # or the error's own frame would refer to it


def aborted(how: str) -> IdempotencyAbortedError:
    """The error for those who repeat a call that came to nothing."""
    return IdempotencyAbortedError(f"the call with the same idempotency token {how}, without a result: call again")


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
