"""The calls with tokens of one agent: those under way, and those that are remembered."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ropewalk import AgentResult
from ropewalk.kits.aio.seam import current_seam
from ropewalk_concurrency.flights import Flight, Outcome, Seat, aborted

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.run import Run


class Books:
    """The books of many agents; each dies with its agent.

    Args:
        seconds: How long a result is remembered; 0 is not at all.
        count: How many each agent remembers.
    """

    __slots__ = ("_by_agent", "_count", "_lock", "_seconds")

    def __init__(self, seconds: float, count: int) -> None:
        self._seconds = seconds
        self._count = count
        self._by_agent: WeakKeyDictionary[Agent, Book] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, agent: Agent) -> Book:
        """The book of an agent, opened at its first call with a token."""
        with self._lock:
            book = self._by_agent.get(agent)
            if book is None:
                book = self._by_agent[agent] = Book(self._seconds, self._count)

            return book


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

    def begin(self, call: str, token: Any, agent: Agent) -> Flight | AgentResult:
        """Enters a call, by the id of its run, or answers it when its result is remembered."""
        with self._lock:
            self._forget(agent, call)
            joined = next((flight for flight in self._flights if flight.call == call and flight.ended is None), None)
            if joined is None:
                known = self._find(token)
                if known is not None and known.result is not None and known.call != call:  # or it is this run's pause
                    return known.result

                joined = Flight(token, call)
                self._flights.append(joined)

            joined.started = True
            return joined

    def begin_without_token(self, call: str, agent: Agent) -> None:
        """Takes note that another call has the agent: what ended before is over."""
        with self._lock:
            self._forget(agent, call)

    def end(self, flight: Flight, outcome: Outcome) -> None:
        """Enters the end of a call."""
        with self._lock:
            flight.end(outcome)

    def join(self, token: Any, agent: Agent) -> AgentResult | Seat | None:
        """Finds the call that another one repeats: its result, or a seat in it; None when there is none.

        Raises:
            IdempotencyAbortedError: It has just failed.
        """
        with self._lock:
            if runs_of(agent):  # if not, the agent has become free since the caller found it busy: see the last flight
                self._forget(agent)

            flight = self._find(token) or self._not_begun(token, agent)
            if flight is None:
                return None

            if flight.failure is not None:
                raise aborted(f"has just failed ({flight.failure})")

            return Seat(flight) if flight.result is None else flight.result

    def leave(self, seat: Seat) -> None:
        """Gives up a seat, if it was not called already."""
        with self._lock:
            if seat in seat.flight.seats:
                seat.flight.seats.remove(seat)

    def _find(self, token: Any) -> Flight | None:
        return next((flight for flight in reversed(self._flights) if same(flight.token, token)), None)

    def _not_begun(self, token: Any, agent: Agent) -> Flight | None:
        """A call that has the agent and has not come to the hooks yet: others may join it all the same."""
        for run in runs_of(agent):
            given = run.options.given.get("idempotency_token")
            if given is not None and same(given, token):
                flight = Flight(given, run.id, run.cancellation.loop, started=False)
                self._flights.append(flight)
                return flight

        return None

    def _forget(self, agent: Agent, beginning: str | None = None) -> None:
        """Drops what is over and not, or no longer, to be remembered; of a run that begins, its end at a pause too."""
        calls = {run.id for run in runs_of(agent)}
        oldest = current_seam().monotonic() - self._seconds
        remembered = [
            flight
            for flight in self._flights
            if self._seconds and _is_final(flight) and flight.ended is not None and flight.ended > oldest
        ][-self._count :]
        self._flights = [
            flight
            for flight in self._flights
            if flight in remembered or (flight.call in calls and (flight.call != beginning or flight.ended is None))
        ]


def _is_final(flight: Flight) -> bool:
    """Whether a repetition of the call would be in vain: not when it was cancelled, or failed."""
    return flight.result is not None and flight.result.stop_reason != "cancelled"


def same(one: Any, other: Any) -> bool:
    """Whether two tokens are equal; they need not be hashable."""
    return one is other or bool(one == other)


def runs_of(agent: Agent) -> list[Run]:
    """The runs that have the agent now."""
    return list(agent._runs)  # noqa: SLF001 - of runs, the kernel shows each only to itself: `current_run`


def is_under_way(agent: Agent, call: str) -> bool:
    """Whether a run has the agent now."""
    return any(run.id == call for run in runs_of(agent))
