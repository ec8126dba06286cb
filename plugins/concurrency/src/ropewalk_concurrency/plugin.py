"""Refuses a second call on a busy agent, unless it repeats the first: then both get one result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, final

import pydantic

from ropewalk import AgentResult, CallOptions, hookimpl
from ropewalk.kits.events import RunEnded
from ropewalk_concurrency.book import Books, is_under_way
from ropewalk_concurrency.flights import Seat
from ropewalk_concurrency.mode import METHOD, ConcurrentInvocationMode, ReentrantPlugin
from ropewalk_concurrency.tokens import TOKEN, TokenKeeper

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_REMEMBERED_SECONDS: Final = 300.0
_REMEMBERED_COUNT: Final = 100


@final
class ConcurrencyPlugin:
    """Answers for `concurrent_invocation_mode` and `idempotency_token`.

    It has no part in runs: what notes the calls with tokens joins an agent with the first of them.
    """

    name = "concurrency"

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
        seconds = (chosen.remember_seconds or _REMEMBERED_SECONDS) if wanted else 0.0
        self._books = Books(seconds, chosen.remember_count or _REMEMBERED_COUNT)
        self._keeper = TokenKeeper(self._books)
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
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Gives the agent the keeper of tokens when this is its first call with one.

        A call that goes on with a run which had a token in another process needs it too: it took part in that run.
        """
        pause = agent.suspension
        if options.given.get(TOKEN) is None and (pause is None or TokenKeeper.name not in pause.plugins):
            return

        with self._lock:  # two threads may call at once, and an agent has one plugin of a name
            if not any(isinstance(plugin, TokenKeeper) for plugin in agent.hooks.plugins):
                agent.add_plugin(self._keeper)

    @hookimpl
    async def admit(self, options: CallOptions, agent: Agent) -> AgentResult | None:
        """Answers a call that repeats the one under way, when that one ends; any other is refused by the kernel.

        Raises:
            IdempotencyAbortedError: The call that it repeats was aborted.
            Exception: What that call raised.
        """
        token = options.given.get(TOKEN)
        if token is None:
            return None

        book = self._books.of(agent)
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


def _throw() -> ConcurrentInvocationMode:
    return ConcurrentInvocationMode.THROW
