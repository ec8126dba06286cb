"""One model turn: attempts until one counts. The kernel's single retry point."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropewalk.errors import ContextWindowOverflowException, PluginError
from ropewalk.kits.calls.outcomes import Failure, ModelOutcome, Retry
from ropewalk.kits.events import AttemptDiscarded
from ropewalk.kits.json_values import text_of
from ropewalk.kits.messages.prompt import with_user_blocks
from ropewalk.kits.messages.rules import checked_answer, checked_said
from ropewalk.loop import context, gates
from ropewalk.model import ModelRequest

if TYPE_CHECKING:
    from ropewalk.run import Run


async def model_turn(run: Run, given: ModelRequest | None = None) -> ModelOutcome:
    """Calls the model, again when a hook asks for it, the context was reduced, or `decide_retry` names a delay.

    Args:
        run: Whose turn it is. One that was paused in its model turn goes on with that attempt.
        given: The request of a call beside the conversation; a turn's is made from the agent.

    Raises:
        Exception: The model's error when nobody retries it; a hook's error always.
    """
    waited = 0.0
    request = given or build_request(run)
    _first_attempt(run)
    while True:
        run.answered = run.streamed = False
        run.model_error = None
        try:
            outcome = await run.model_chain(request)
        except asyncio.CancelledError:
            if not run.cancellation.claim():
                raise

            return ModelOutcome.nothing()
        except Exception as error:
            own, run.model_error = error is run.model_error, None  # an error refers to the frames that refer to the run
            if not own:
                raise  # a hook's, not the model's

            delay = await _delay_after(run, error, waited, given)
            if delay is None:
                raise

            waited += delay
            await run.sleep(delay)
            if run.cancelled:
                return ModelOutcome.nothing()

            request = build_request(run) if given is None else request
            run.attempt, run.outcome = run.attempt + 1, None
            continue

        if isinstance(outcome, ModelOutcome):
            last = await gates.last_look_at_model(run, outcome) if run.hooks.plan.intervene else outcome
            return last if last is run.outcome else _checked(run, last)

        if run.cancelled:
            return ModelOutcome.nothing()

        request = await _again(run, request, outcome, given)
        run.attempt, run.outcome = run.attempt + 1, None


def _checked(run: Run, outcome: ModelOutcome) -> ModelOutcome:
    """An outcome that is not the kernel's own assembly of the model's stream."""
    message = checked_answer(outcome.message, "the answer from around_model_call or a gate", run.history.free_id)
    return ModelOutcome(**{**outcome.to_dict(), "message": message})


def _first_attempt(run: Run) -> None:
    """A turn that goes on after a pause keeps its attempt, and the answer if there was one."""
    if run.resumed is None:
        run.attempt, run.outcome = 1, None

    run.resumed = None


def build_request(run: Run) -> ModelRequest:
    """The request of the next attempt, from the agent as it is now."""
    agent = run.agent
    if run.model is None or run.model is not agent.current_model:
        run.model = agent.resolve_model()

    return ModelRequest(
        run.history.view(), agent.system_blocks, agent.tool_registry.specs, None, None, run.invocation_state
    )


async def _delay_after(run: Run, error: Exception, waited: float, given: ModelRequest | None) -> float | None:
    """Seconds until the next attempt, or None to give up."""
    if isinstance(error, ContextWindowOverflowException):
        if given is not None or not (await context.reduce(run, error) or run.cancelled):
            return None

        await _discard(run, text_of(error))
        return 0.0

    delay = await run.hooks.decide_retry(Failure(error, run.attempt, run.streamed, waited), run.agent)
    if delay is not None:
        await _discard(run, text_of(error), delay)

    return delay


async def _again(run: Run, request: ModelRequest, outcome: object, given: ModelRequest | None) -> ModelRequest:
    """The request of the attempt that a hook asked for."""
    if not isinstance(outcome, Retry):
        raise PluginError(
            f"around_model_call returned {type(outcome).__name__}: "
            "return what call_next returned, a ModelOutcome, or Retry(...)"
        )

    await _discard(run, outcome.reason)
    if outcome.feedback and given is not None:
        return with_user_blocks(outcome.request or request, outcome.feedback)

    if outcome.feedback:
        run.history.add_user(checked_said(outcome.feedback, "Retry.feedback"))
        await run.commit()
        return build_request(run)

    return outcome.request or request


async def _discard(run: Run, reason: str, delay: float = 0.0) -> None:
    if run.journal:
        run.journal.add("attempt_discarded", {"cycle": run.cycle, "attempt": run.attempt, "reason": reason})

    if run.followed:
        await run.emit(AttemptDiscarded(run.attempt, reason, delay))
