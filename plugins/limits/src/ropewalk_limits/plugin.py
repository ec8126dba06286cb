"""The option `limits` of an agent's calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import CallOptions, Denied, Invocation, Stop, hookimpl
from ropewalk_limits.account import current_account, opened
from ropewalk_limits.budget import Budget
from ropewalk_limits.limits import checked_limits
from ropewalk_limits.prices import Price, Prices

if TYPE_CHECKING:
    from ropewalk import AgentResult
    from ropewalk.agent import Agent
    from ropewalk.invocation import Cycle


@final
class LimitsPlugin:
    """Checks the option `limits`, and brings what enforces it to the agents that it is given to: others pay nothing."""

    name = "limits"

    class Config(pydantic.BaseModel):
        """Options of the plugin.

        Attributes:
            prices: What models cost, for the limit `cost`: per model id, with `"*"` for all others; or a function of
                model id and usage. Without prices the cost cannot be limited.
        """

        prices: dict[str, Price] | Callable[[str, Mapping[str, int]], float] | None = None

    def __init__(self, config: Config | None = None) -> None:
        self._prices = (config or self.Config()).prices
        self._enforcer = LimitsEnforcer(self._prices)

    @hookimpl
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Refuses limits that are none, before any work is done.

        Raises:
            TypeError: There is no such limit, or a value is no positive number of its kind.
            ValueError: The cost is to be limited and there are no prices.
        """
        limits = options.given.get("limits")
        above = current_account()
        if limits is None and above is None:
            return

        if limits is not None:
            allowed = _allowed(limits)
            if "cost" in allowed and self._prices is None and (above is None or above.prices is None):
                raise ValueError(
                    "limits: the cost cannot be limited without prices: "
                    'plugins=[("limits", {"prices": {"<model id>": {"input": 3, "output": 15}}})], per million tokens'
                )

        if not any(isinstance(plugin, LimitsEnforcer) for plugin in agent.hooks.plugins):
            agent.add_plugin(self._enforcer)


@final
class LimitsEnforcer:
    """Counts what calls spend and stops them. Added to an agent by its first call that has limits."""

    name = "limits-enforcer"
    order = -100  # outside of what may run a call's cycles several times over

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Keeps the account of a call that has limits, or is part of one that has."""
        limits = invocation.options.given.get("limits")
        if limits is None and current_account() is None:
            return await call_next(invocation)

        shared = limits if isinstance(limits, Budget) else None
        fresh = Budget(**limits) if isinstance(limits, Mapping) else None
        with opened(agent, shared, fresh, self._prices):
            return await call_next(invocation)

    @hookimpl
    async def decide_stop(self, cycle: Cycle, agent: Agent) -> Stop | None:
        """Stops the call when a limit is reached; the tools of the turn before have run."""
        account = current_account()
        return account.ask_to_stop(cycle.metrics) if account is not None and account.agent is agent else None


def _allowed(limits: Any) -> Mapping[str, float]:
    if isinstance(limits, Budget):
        return limits.limits

    if not isinstance(limits, Mapping):
        raise TypeError(f"limits={limits!r}: give a dict such as {{'turns': 5}}, or a Budget")

    return checked_limits(limits, f"limits={limits!r}")
