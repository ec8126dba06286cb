"""The plugin: waits before a model call until it fits into the minute."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

import pydantic

from ropewalk import ModelOutcome, ModelRequest, Retry, current_run, hookimpl
from ropewalk.kits.aio.seam import current_seam
from ropewalk_rate_limit.accounts import account_of, id_of
from ropewalk_rate_limit.errors import RequestTooLargeError
from ropewalk_rate_limit.rate import Rate
from ropewalk_rate_limit.tokens import by_size, estimate, remember

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.state import JSONState

logger = logging.getLogger("ropewalk.rate_limit")

_SHORTEST: Final = 0.001  # seconds; less is no wait


@final
class RateLimitPlugin:
    """Keeps all agents of this process that have it within a model's requests and tokens a minute."""

    name = "rate-limit"
    order = 100  # close to the model: what other hooks add to a request counts, what they answer themselves does not

    class Config(Rate):
        """Options of the plugin.

        Attributes:
            requests_per_minute: Model calls in any 60 seconds; None is no limit.
            tokens_per_minute: Tokens read and written in any 60 seconds; None is no limit.
            models: Limits of single models, by their id.
        """

        models: dict[str, Rate] = pydantic.Field(default_factory=dict)

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        self._rate = Rate(requests_per_minute=chosen.requests_per_minute, tokens_per_minute=chosen.tokens_per_minute)
        self._rates = dict(chosen.models)

    @hookimpl
    def on_agent_ready(self, agent: Agent) -> None:
        """Says so when there is nothing to keep to."""
        if self._rate.is_none and not self._rates:
            logger.warning(
                "agent %r has rate-limit and no limit: give requests_per_minute, tokens_per_minute or models",
                agent.name,
            )

    @hookimpl
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """Waits for the call's turn, and counts what it has used.

        Raises:
            RequestTooLargeError: It can never fit.
        """
        rate = self._rates.get(id_of(agent.model) or "", self._rate)
        if rate.is_none or (request.purpose == "turn" and current_run().outcome is not None):
            return await call_next(request)  # which has the answer that came before a pause, and asks no model

        cell = agent.plugin_state(self.name)
        tokens = _checked(agent, rate.tokens_per_minute, request, cell) if rate.tokens_per_minute else 0
        account = account_of(agent.model)
        now = current_seam().monotonic
        began = now()
        call = await account.begin(rate, tokens)
        _note(agent, now() - began)
        outcome = await call_next(request)
        if isinstance(outcome, ModelOutcome) and outcome.usage["totalTokens"] > 0:
            account.correct(call, outcome.usage["totalTokens"])
            remember(request, outcome.usage, cell)

        return outcome


def _checked(agent: Agent, allowed: int, request: ModelRequest, cell: JSONState) -> int:
    """The tokens to wait for: what will be read has to fit, what will be written is a guess."""
    read, written = estimate(request, cell)
    if read > allowed:  # messages may have become shorter since the last call, each in its place
        read = min(read, by_size(request))

    if read > allowed:
        raise RequestTooLargeError(id_of(agent.model) or type(agent.model).__name__, read, allowed)

    return min(read + written, allowed)


def _note(agent: Agent, seconds: float) -> None:
    """Leaves in `result.state["rate_limit"]` how the run has waited, also before a pause."""
    if seconds < _SHORTEST:
        return

    logger.info("%s has waited %.1f s for its turn at the model", agent.name, seconds)
    run = current_run()
    if run.agent is agent:
        known = run.state.get("rate_limit", {"waits": 0, "seconds": 0.0})
        run.state["rate_limit"] = {"waits": known["waits"] + 1, "seconds": known["seconds"] + seconds}
