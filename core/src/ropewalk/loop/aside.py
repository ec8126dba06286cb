"""A call of the model beside the conversation: the same hooks, gates, retries and cancel, and no history."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ropewalk.kits.messages.history import History
from ropewalk.loop.model_step import call_model
from ropewalk.loop.model_turn import model_turn
from ropewalk.run import Run

if TYPE_CHECKING:
    from ropewalk.kits.calls.outcomes import ModelOutcome
    from ropewalk.model import ModelRequest


async def ask_model(run: Run, request: ModelRequest, purpose: str) -> ModelOutcome:
    """Calls the model of the run's agent; see `Run.ask_model`."""
    aside = Run(run.agent, run.options, run.hooks, History(), None)
    aside.lose_followers()
    aside.id, aside.cycle, aside.metrics, aside.cancellation = run.id, run.cycle, run.metrics, run.cancellation
    aside.journal, aside.state, aside.model = run.journal, run.state, run.agent.resolve_model()
    aside.model_chain = run.hooks.around_model_call(partial(call_model, aside), run.agent)
    messages = run.history.messages
    messages.asked += 1  # hooks of the call are told, as in a turn
    try:
        return await model_turn(aside, replace(request, purpose=purpose, invocation_state=run.invocation_state))
    finally:
        messages.asked -= 1
        del aside.model_chain
