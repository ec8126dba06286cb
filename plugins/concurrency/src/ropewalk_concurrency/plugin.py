"""Refuses a second call on a busy agent, unless it repeats the first: then both get one result."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, final
from weakref import WeakKeyDictionary

import pydantic

from ropewalk import AgentResult, CallOptions, Denied, EventLoopMetrics, Invocation, hookimpl
from ropewalk.kits.events import RunEnded
from ropewalk_concurrency.book import Book, is_under_way
from ropewalk_concurrency.flights import Inside, Outcome, Seat
from ropewalk_concurrency.mode import METHOD, ConcurrentInvocationMode, ReentrantPlugin

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_REMEMBERED_SECONDS: Final = 300.0
_REMEMBERED_COUNT: Final = 100


@final
class ConcurrencyPlugin:
    """Answers for `concurrent_invocation_mode` and `idempotency_token`.

    Its books hold what is under way and what is remembered of results, by agent, and die with the agent.
    """

    name = "concurrency"
    order = -1000  # outermost: what repeats a call gets the result that its caller gets

    class Config(pydantic.BaseModel):
        """Options of the plugin. Results are remembered when one of the two is given.

        Attributes:
            remember_seconds: How long the result of a call with a token answers its repetitions. Default 300.
            remember_count: How many results each agent remembers. Default 100.
        """

        remember_seconds: float | None = pydantic.Field(default=None, gt=0, allow_inf_nan=False)
        remember_count: int | None = pydantic.Field(default=None, ge=1)

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        wanted = chosen.remember_seconds is not None or chosen.remember_count is not None
        self._seconds = (chosen.remember_seconds or _REMEMBERED_SECONDS) if wanted else 0.0
        self._count = chosen.remember_count or _REMEMBERED_COUNT
        self._books: WeakKeyDictionary[Agent, Book] = WeakKeyDictionary()
        self._lock = threading.Lock()

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Self | ReentrantPlugin | None:
        """Takes the mode.

        Raises:
            ValueError: There is no such mode.
        """
        if parameter != METHOD:
            return None

        try:
            mode = ConcurrentInvocationMode(value)
        except ValueError:
            modes = " or ".join(repr(each.value) for each in ConcurrentInvocationMode)
            raise ValueError(f"{parameter}={value!r}: give a ConcurrentInvocationMode, or {modes}") from None

        return self if mode is ConcurrentInvocationMode.THROW else ReentrantPlugin()

    @hookimpl
    def provide_method(self, name: str) -> Callable[[], ConcurrentInvocationMode] | None:
        """Tells the mode."""
        return _throw if name == METHOD else None

    @hookimpl
    async def admit(self, options: CallOptions, agent: Agent) -> AgentResult | None:
        """Answers a call that repeats the one under way, when that one ends; any other is refused by the kernel.

        Raises:
            IdempotencyAbortedError: The call that it repeats was aborted.
            Exception: What that call raised.
        """
        token = options.given.get("idempotency_token")
        if token is None:
            return None

        book = self._book(agent)
        found = book.join(token, agent)
        if isinstance(found, Seat):
            seat = found
            try:
                found = await seat.wait(partial(is_under_way, agent, seat.flight.call))
            finally:
                book.leave(seat)

        if found is not None:
            await agent.hooks.on_event(RunEnded(found), agent)  # callbacks hear of every call's result

        return found

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Lets calls with the same token find this one, and answers this one when its result is remembered."""
        token = invocation.options.given.get("idempotency_token")
        if token is None:
            if self._books and (known := self._books.get(agent)) is not None:
                known.begin_without_token(agent)

            return await call_next(invocation)

        book = self._book(agent)
        flight = book.begin(invocation.options, token, agent)
        if isinstance(flight, AgentResult):
            return flight

        try:
            with Inside(flight):
                result = await call_next(invocation)
        except BaseException as error:
            book.end(flight, error)
            raise

        book.end(flight, _told(result))
        return result

    def _book(self, agent: Agent) -> Book:
        with self._lock:
            book = self._books.get(agent)
            if book is None:
                book = self._books[agent] = Book(self._seconds, self._count)

            return book


def _told(result: AgentResult | Denied) -> Outcome:
    """What those who repeat a call get; a refusal becomes a result beyond the hooks."""
    if isinstance(result, Denied):
        return AgentResult("end_turn", {"role": "assistant", "content": [{"text": result.text}]}, EventLoopMetrics())

    return result


def _throw() -> ConcurrentInvocationMode:
    return ConcurrentInvocationMode.THROW
