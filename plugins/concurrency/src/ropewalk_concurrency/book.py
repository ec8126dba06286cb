"""The calls with tokens of one agent: those under way, and those that are remembered."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from ropewalk import AgentResult
from ropewalk.kits.aio.seam import current_seam
from ropewalk_concurrency.flights import Flight, Outcome, aborted

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.invocation import CallOptions


class Book:
    """Keeps the flights of one agent; safe between threads.

    Args:
        seconds: How long a result is remembered; 0 is not at all.
        count: How many are remembered.
    """

    __slots__ = ("_count", "_flights", "_lock", "_seconds")

    def __init__(self, seconds: float, count: int) -> None:
        self._seconds = seconds
        self._count = count
        self._lock = threading.Lock()
        self._flights: list[Flight] = []

    def begin(self, options: CallOptions, token: Any, agent: Agent) -> Flight | AgentResult:
        """Enters a call that was admitted, or answers it when its result is remembered."""
        with self._lock:
            self._forget(agent, options)
            for flight in self._flights:
                if flight.options is options:
                    flight.started = True
                    return flight

            known = self._find(token)
            if known is not None and known.result is not None:
                return known.result

            flight = Flight(token, options)
            flight.started = True
            self._flights.append(flight)
            return flight

    def end(self, flight: Flight, outcome: Outcome) -> None:
        """Enters the end of a call."""
        with self._lock:
            flight.end(outcome)

    def join(self, token: Any, agent: Agent) -> AgentResult | tuple[Flight, asyncio.Future[Outcome]] | None:
        """Finds the call that another one repeats: its result, or a seat in it; None when there is none.

        Raises:
            IdempotencyAbortedError: It has just failed.
        """
        with self._lock:
            self._forget(agent, None)
            flight = self._find(token) or self._not_begun(token, agent)
            if flight is None:
                return None

            if flight.failure is not None:
                raise aborted(f"has just failed ({flight.failure})")

            return flight.result or (flight, flight.seat())

    def _find(self, token: Any) -> Flight | None:
        return next((flight for flight in reversed(self._flights) if same(flight.token, token)), None)

    def _not_begun(self, token: Any, agent: Agent) -> Flight | None:
        """A call that has the agent and has not come to the hooks yet: others may join it all the same."""
        for options in calls_under_way(agent):
            given = options.given.get("idempotency_token")
            if given is not None and same(given, token):
                flight = Flight(given, options)
                self._flights.append(flight)
                return flight

        return None

    def _forget(self, agent: Agent, but: CallOptions | None) -> None:
        """Drops what is over and not, or no longer, to be remembered."""
        under_way = [id(options) for options in calls_under_way(agent)]
        oldest = current_seam().monotonic() - self._seconds
        remembered = [
            flight
            for flight in self._flights
            if self._seconds and _is_final(flight) and flight.ended is not None and flight.ended > oldest
        ][-self._count :]
        self._flights = [
            flight
            for flight in self._flights
            if id(flight.options) in under_way or flight.options is but or flight in remembered
        ]


def _is_final(flight: Flight) -> bool:
    """Whether a repetition of the call would be in vain: not when it was cancelled, or failed."""
    return flight.result is not None and flight.result.stop_reason != "cancelled"


def same(one: Any, other: Any) -> bool:
    """Whether two tokens are equal; they need not be hashable."""
    return one is other or bool(one == other)


def calls_under_way(agent: Agent) -> list[CallOptions]:
    """The options of the calls that have the agent now."""
    return [run.options for run in list(agent._runs)]  # noqa: SLF001 - until `admit` is told which call is under way


def is_under_way(agent: Agent, options: CallOptions) -> bool:
    """Whether a call has the agent now."""
    return any(each is options for each in calls_under_way(agent))
