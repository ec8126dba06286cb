"""`Agent.structured_output`: one question beside the conversation, which it neither reads on nor changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from ropewalk import Refuse
from ropewalk.errors import MaxTokensReachedException
from ropewalk.kits.calls.invocation import CallOptions, Denied, Invocation
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.prompt import prompt_messages
from ropewalk.kits.messages.rules import tool_uses
from ropewalk.kits.result import AgentResult
from ropewalk.loop.gates import denied
from ropewalk.loop.model_step import call_model
from ropewalk.loop.model_turn import model_turn
from ropewalk.run import Run, under_way
from ropewalk_structured.engine import BESIDE, engine_of
from ropewalk_structured.errors import StructuredOutputException
from ropewalk_structured.prompt import prompt_of
from ropewalk_structured.session import Session, current
from ropewalk_structured.target import target_of

if TYPE_CHECKING:
    from ropewalk import Agent
    from ropewalk.kits.calls.outcomes import ModelOutcome
    from ropewalk.types import AgentInput, ContentBlock
    from ropewalk_structured.engine import StructuredOutput
    from ropewalk_structured.target import Target


_PURPOSE: Final = "structured_output"


async def fill(agent: Agent, engine: StructuredOutput, output_model: Any, prompt: AgentInput = None) -> Any:
    """Fills an output model from the conversation, or from a prompt that is not kept.

    The model is called through the agent's hooks, gates and retries, on a copy of the history; the callbacks that
    follow the agent's runs are not shown it, and nothing is stored.

    Raises:
        OutputModelError: It is no output model.
        RuntimeError: A run of the agent is paused: what the conversation says is not said yet.
        ValueError: There is neither a prompt nor a history.
        StructuredOutputException: The model did not fill it, the call was cancelled, or a hook refused it.
    """
    agent.check_open()
    if agent.suspension is not None:
        raise RuntimeError(
            f"cannot call structured_output while a run of agent {agent.name!r} is paused ({agent.suspension.kind}): "
            "let it go on first, or end it with a new prompt"
        )

    target = target_of(output_model)
    messages = prompt_messages(prompt)
    if not messages and not agent.messages:
        raise ValueError("structured_output has neither a prompt nor a history to fill the model from: pass a prompt")

    hooks = agent.hooks if engine_of(agent) is not None else agent.hooks.with_plugin(engine)
    run = Run(agent, CallOptions(prompt, {}, {BESIDE: True}), hooks, History(), None)
    run.lose_followers()
    run.journal = None  # no part of the agent's log
    chain = hooks.around_model_call(partial(call_model, run), agent)
    run.model_chain = lambda request: chain(replace(request, purpose=_PURPOSE))
    if not agent.claim(run):
        agent.join(run)

    token = under_way.set(ref(run))
    run.cancellation.park()
    try:
        return await _asked(run, Invocation(messages, run.options), target, engine.max_attempts)
    except asyncio.CancelledError:
        if not run.cancellation.claim():
            raise

        raise _cancelled(target) from None
    finally:
        under_way.reset(token)
        run.cancellation.end()
        run.cancellation.unpark()
        del run.model_chain
        agent.release(run)


async def _asked(run: Run, invocation: Invocation, target: Target, most: int) -> Any:
    hooks, agent = run.hooks, run.agent
    await agent.initialise()
    result = await hooks.around_invocation(partial(_answered, run, target, most), agent)(invocation)
    if isinstance(result, Denied):
        raise StructuredOutputException(target.name, f"the call was refused: {result.text}", 0)

    return result.structured_output


async def _answered(run: Run, target: Target, most: int, invocation: Invocation) -> AgentResult | Denied:
    """The innermost step: ask until the model has filled it, or too often."""
    agent = run.agent
    invocation, refusal = await run.hooks.intervene("before_invocation", invocation, agent)
    if isinstance(refusal, Refuse):
        return Denied(denied(refusal))

    run.history = history = _copied(agent)
    history.add_input(invocation.messages)
    session = Session(agent, target, prompt_of(agent), most, purpose=_PURPOSE)
    if history.messages[-1]["role"] == "assistant":
        history.add_user([{"text": session.prompt}])

    with current(session):
        while True:  # bounded by the session's attempts
            outcome = await model_turn(run)
            feedback = _judged(session, outcome)
            if session.filled:
                return AgentResult("end_turn", outcome.message, run.metrics, run.state, structured_output=session.value)

            history.add_assistant(outcome.message)
            history.add_user(feedback)


def _judged(session: Session, outcome: ModelOutcome) -> list[ContentBlock]:
    """Takes the output from an answer, or says what is wrong with it."""
    if outcome.stop_reason == "cancelled":
        raise _cancelled(session.target)

    if outcome.stop_reason == "max_tokens":
        raise MaxTokensReachedException(
            f"{session.target.name} was cut at the model's token limit: raise its max_tokens or ask for less"
        )

    uses = tool_uses(outcome.message)
    if not uses:
        problem = session.take_text(outcome.message)
        return [] if problem is None else [{"text": problem}]

    results = [session.answer(use, (outcome.input_errors or {}).get(use["toolUseId"])) for use in uses]
    session.settle(uses, results)
    session.check()
    return [{"toolResult": result} for result in results]


def _copied(agent: Agent) -> History:
    messages = list(agent.messages)
    if agent.history.open_uses:  # a run is in the middle of its tools
        messages.pop()

    return History(messages)


def _cancelled(target: Target) -> StructuredOutputException:
    return StructuredOutputException(target.name, "the call was cancelled", 0)
