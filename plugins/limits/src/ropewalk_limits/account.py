"""What one call of an agent spends, and the budgets that it draws on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ropewalk import EventLoopMetrics, Stop
from ropewalk.kits.aio.seam import current_seam
from ropewalk_limits.budget import Budget, Spent
from ropewalk_limits.limits import ORDER, OWN
from ropewalk_limits.prices import Prices, check_price, cost_of, model_id_of

if TYPE_CHECKING:
    from ropewalk.agent import Agent


@dataclass(frozen=True, slots=True)
class Draw:
    """A budget that a call draws on.

    Attributes:
        budget: The budget.
        shared: Whether it was made to be shared: the calls within this one draw on all of it.
        full: Whether this call's turns and tool calls count too; not where the budget is that of one call above.
    """

    budget: Budget
    shared: bool
    full: bool = True


class Account:
    """The account of one call. Accounts of calls within calls know the one above them."""

    __slots__ = (
        "_began",
        "_counted",
        "_lock",
        "_metrics",
        "_now",
        "_usage",
        "agent",
        "draws",
        "label",
        "parent",
        "prices",
    )

    def __init__(self, agent: Agent, draws: tuple[Draw, ...], prices: Prices | None, parent: Account | None) -> None:
        self.agent = agent
        self.label = agent.name
        self.draws = draws
        self.prices = prices
        self.parent = parent
        self._metrics: EventLoopMetrics | None = None
        self._usage: dict[str, int] = {}
        self._counted = Spent()
        self._now = current_seam().monotonic
        self._began = self._now()
        self._lock = threading.Lock()  # calls within this one settle it too, in their own threads

    def ask_to_stop(self, metrics: EventLoopMetrics) -> Stop | None:
        """Lets the next turn begin, or ends the call because a limit is reached.

        Raises:
            ValueError: The cost is limited, and the price of the model is not known.
        """
        if self.prices is not None and any("cost" in d.budget.limits for d in self.draws):
            check_price(self.prices, model_id_of(self.agent.model))

        self.follow(metrics)
        self.settle()
        for name in ORDER:
            for draw in self.draws:
                if name in draw.budget.limits and (draw.full or name not in OWN) and draw.budget.has_reached(name):
                    return _stop(name, draw.budget)

        return self._begin_turn()

    def settle(self) -> None:
        """Counts what was spent since the last time, here and in the calls that this one is part of."""
        if self.parent is not None:
            self.parent.settle()

        with self._lock:
            self._count(self._news())

    def follow(self, metrics: EventLoopMetrics) -> None:
        """Counts what these metrics say from now on."""
        self._metrics = metrics

    def spend_beside(self, purpose: str, usage: Mapping[str, int]) -> None:
        """Notes a model call beside the conversation: for what it was, and its tokens if no metrics have them."""
        amount = Spent(
            output_tokens=usage.get("outputTokens", 0),
            total_tokens=usage.get("totalTokens", 0),
            cost=self._cost(usage),
        )
        with self._lock:
            for draw in self.draws:
                draw.budget.attribute(purpose, amount)
                if self._metrics is None:
                    draw.budget.add(self.label, amount)

    def _cost(self, usage: Mapping[str, int]) -> float:
        model = self.agent.current_model
        priced = self.prices is not None and model is not None and any(usage.values())
        return cost_of(self.prices, model_id_of(model), usage) if priced and self.prices is not None else 0.0

    def _begin_turn(self) -> Stop | None:
        """Counts the turn before it begins: of calls that run at once, no more may begin than the budget allows."""
        with self._lock:
            taken: list[Draw] = []
            for draw in self.draws:
                if not draw.full:
                    continue

                if not draw.budget.take_turn(self.label):
                    for other in taken:
                        other.budget.add(self.label, Spent(turns=-1))

                    return _stop("turns", draw.budget)

                taken.append(draw)

            self._counted += Spent(turns=1)
            return None

    def _count(self, news: Spent) -> None:
        self._counted += news
        for draw in self.draws:
            draw.budget.add(self.label, news if draw.full else replace(news, turns=0, tool_calls=0))

    def _news(self) -> Spent:
        seconds = self._now() - self._began - self._counted.seconds
        metrics = self._metrics
        if metrics is None:
            return Spent(seconds=seconds)

        usage: dict[str, Any] = {**metrics.accumulated_usage}
        news = {key: count - self._usage.get(key, 0) for key, count in usage.items()}
        self._usage = usage
        return Spent(
            turns=metrics.cycle_count - self._counted.turns,
            output_tokens=news["outputTokens"],
            total_tokens=news["totalTokens"],
            seconds=seconds,
            tool_calls=sum(t.call_count for t in list(metrics.tool_metrics.values())) - self._counted.tool_calls,
            cost=self._cost(news),
        )


def _stop(name: str, budget: Budget) -> Stop:
    return Stop(f"limit_{name}", {"limits": _told(name, budget, budget.total)})


def _told(name: str, budget: Budget, total: Spent) -> dict[str, Any]:
    """What `result.state["limits"]` says."""
    return {
        "limit": name,
        "allowed": budget.limits[name],
        "spent": total.to_dict(),
        "by_agent": {agent: spent.to_dict() for agent, spent in budget.spent.items()},
        "beside": {purpose: spent.to_dict() for purpose, spent in budget.beside.items()},
    }


_current: ContextVar[Account | None] = ContextVar("ropewalk_limits", default=None)


def current_account() -> Account | None:
    """The account of the call that the code at hand is part of."""
    return _current.get()


@contextmanager
def opened(agent: Agent, given: Budget | None, fresh: Budget | None, prices: Prices | None) -> Iterator[Account]:
    """Opens the account of a call for the length of a `with` block.

    Args:
        agent: Whose call.
        given: The budget that the caller gave and shares.
        fresh: The budget of this call alone.
        prices: What models cost.
    """
    above = _current.get()
    draws = {id(draw.budget): replace(draw, full=draw.shared) for draw in (above.draws if above is not None else ())}
    if given is not None:
        draws[id(given)] = Draw(given, shared=True)
    elif fresh is not None:
        draws[id(fresh)] = Draw(fresh, shared=False)

    inherited = above.prices if above is not None else None
    account = Account(agent, tuple(draws.values()), inherited if prices is None else prices, above)
    token = _current.set(account)
    with ExitStack() as clocks:
        for draw in account.draws:
            clocks.enter_context(draw.budget)

        try:
            yield account
        finally:
            _current.reset(token)
            account.settle()
