"""The option `limits` of an agent's calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast, final

import pydantic

from ropewalk import (
    CallOptions,
    Denied,
    Invocation,
    ModelOutcome,
    ResumeError,
    Retry,
    Stop,
    Suspend,
    current_run,
    hookimpl,
)
from ropewalk.kits.suspension.answers import resumes
from ropewalk_limits import keeping
from ropewalk_limits.account import current_account, opened
from ropewalk_limits.budget import Budget
from ropewalk_limits.limits import checked_limits
from ropewalk_limits.prices import Price, Prices

if TYPE_CHECKING:
    from ropewalk import AgentResult, ModelRequest
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.invocation import Cycle
    from ropewalk.run import Run


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
            ResumeError: The call goes on with a paused run, whose shared budget is not known here.
        """
        limits = options.given.get("limits")
        above, pause = current_account(), agent.suspension
        if limits is None and above is None and (pause is None or LimitsEnforcer.name not in pause.plugins):
            return

        allowed = _allowed(limits) if limits is not None else _kept_limits(options, agent)
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
    order = -900_000  # outside of what may run a call's cycles several times over, or pause it before they begin

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Keeps the account of a call that has limits, or is part of one that has.

        A run that goes on after a pause goes on with its budget.
        """
        limits = invocation.options.given.get("limits")
        shared = limits if isinstance(limits, Budget) else None
        own = Budget(**limits) if isinstance(limits, Mapping) else None
        if invocation.resumed and current_run().resumed is not None:
            shared, own = _taken_up(current_run(), shared, own)

        if shared is None and own is None:
            if current_account() is None:
                return await call_next(invocation)

            with opened(agent, None, None, self._prices):
                return await call_next(invocation)

        run, paused = current_run(), False
        keeping.keep(run, shared, own)  # if the process ends here, its successor knows the limits
        try:
            with opened(agent, shared, own, self._prices) as account:
                if run.options is invocation.options:
                    account.follow(run.metrics)

                result = await call_next(invocation)

            paused = run.paused is not None
        except Suspend:
            paused = True
            raise
        finally:
            if paused:
                keeping.keep(run, shared, own)
            else:
                keeping.forget(run)

        return result

    @hookimpl(trylast=True)
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]]
    ) -> ModelOutcome | Retry:
        """Notes what calls beside the conversation are for."""
        outcome = await call_next(request)
        account = current_account()
        if request.purpose != "turn" and isinstance(outcome, ModelOutcome) and account is not None:
            account.spend_beside(request.purpose, cast("Mapping[str, int]", outcome.usage))

        return outcome

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


def _kept_limits(options: CallOptions, agent: Agent) -> Mapping[str, float]:
    """The limits of the paused run that a call without limits goes on with; none when it does not."""
    pause = agent.suspension
    noted = keeping.kept(agent, pause.run) if pause is not None else None
    if pause is None or noted is None or not resumes(options.prompt, pause):
        return {}

    limits: Mapping[str, float] | None = noted["limits"]
    if limits is None and keeping.remembered(agent, pause.run) is None:
        raise ResumeError(
            "the paused run draws on a Budget, which another process has: pass limits=Budget(...), or a dict of limits"
        )

    return limits or {}


def _taken_up(run: Run, shared: Budget | None, own: Budget | None) -> tuple[Budget | None, Budget | None]:
    """The budget of a run that goes on: the limits that the caller gives now, and what was spent before."""
    noted = keeping.kept(run.agent, run.id)
    if noted is None or shared is not None:
        return shared, own

    if noted["limits"] is None:
        return (keeping.remembered(run.agent, run.id), None) if own is None else (None, own)

    own = own or Budget(**noted["limits"])
    own.take_up(noted["spent"])
    return None, own
