"""Hooks around model calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.outcomes import Failure, ModelOutcome, Retry
    from ropewalk.model import ModelRequest


class ModelSpecs(Protocol):
    """One model call, and what happens when it fails."""

    @hookspec
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """Wraps one attempt at a model call.

        Runs inside `around_invocation`, after `manage_context`. `call_next(request)` runs the rest of the chain, once.

        Args:
            request: What will be sent; pass a changed copy (`dataclasses.replace`) to change it for this attempt only.
            call_next: The rest of the chain, the model at its end.
            agent: The agent that runs.

        Returns:
            The outcome, or `Retry` to drop it and try again.
        """

    @hookspec(firstresult=True)
    async def decide_retry(self, failure: Failure, agent: Agent) -> float | None:
        """Decides whether a failed model call is tried again. The kernel waits; cancelling ends the wait.

        Returns:
            Seconds to wait before the next attempt, or None to leave it to others; when nobody answers, the error is
            raised.
        """
