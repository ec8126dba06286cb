"""The cycles of one run: stop?, manage the context, call the model, run the tools, again. Depth never grows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ropewalk.errors import MaxTokensReachedException, ModelError
from ropewalk.invocation import Cycle
from ropewalk.kits.events import CycleStarted, MessageAdded
from ropewalk.kits.messages.rules import is_legal_tool_name, tool_uses
from ropewalk.kits.result import AgentResult
from ropewalk.loop import context, gates
from ropewalk.loop.model_step import call_model
from ropewalk.loop.model_turn import model_turn
from ropewalk.loop.tool_step import invoke_tool
from ropewalk.loop.tools_step import execute_batch, run_tools
from ropewalk.outcomes import ModelOutcome
from ropewalk.types import ContentBlock, Message, StopReason, ToolUse

if TYPE_CHECKING:
    from ropewalk.outcomes import ToolsOutcome
    from ropewalk.run import Run

_NAMELESS_TURNS: Final = 8  # a bound on a fault, not a budget: a model that can name a tool does so at once
CANCELLED_TEXT = "Cancelled by user"


def compose(run: Run) -> None:
    """Builds the run's chains around their innermost steps, once per set of hooks."""
    hooks, agent = run.hooks, run.agent
    run.model_chain = hooks.around_model_call(partial(call_model, run), agent)
    run.tools_chain = hooks.around_tools(partial(execute_batch, run), agent)
    run.tool_chain = hooks.around_tool_call(partial(invoke_tool, run), agent)


async def run_cycles(run: Run) -> AgentResult:
    """Runs cycles until something ends the run.

    Raises:
        MaxTokensReachedException: The answer was cut at the token limit.
        Exception: A model's error that nobody retries, or a hook's.
    """
    compose(run)
    while True:
        if run.cancelled:
            return cancelled_result(run)

        if run.hooks.plan.decide_stop:
            spent = run.now() - run.metrics.started
            cycle = Cycle(run.cycle + 1, run.options, run.metrics, spent)
            stop = await run.hooks.decide_stop(cycle, run.agent)
            if stop is not None:
                run.state.update(stop.state)
                return AgentResult(stop.stop_reason, last_assistant(run), run.metrics, run.state)

        began = run.now()
        await _begin_cycle(run)
        outcome = await model_turn(run)
        result = await _after_model(run, outcome)
        run.metrics.cycle_durations.append(run.now() - began)
        if result is not None:
            return result


async def _begin_cycle(run: Run) -> None:
    run.cycle += 1
    run.metrics.cycle_count += 1
    if run.agent.hooks is not run.hooks:
        run.use_hooks(run.agent.hooks)
        compose(run)

    if run.followed:
        await run.emit(CycleStarted(run.cycle))

    if run.hooks.plan.manage_context:
        await context.manage(run, "before_model")


async def _after_model(run: Run, outcome: ModelOutcome) -> AgentResult | None:
    """Appends the model's message and carries out what it asks for; a result ends the run."""
    message, stop = outcome.message, outcome.stop_reason
    if outcome.redact_input:
        run.history.redact_last_input(outcome.redact_input)

    if stop == "cancelled":
        if message["content"]:
            await _append(run, message)

        return cancelled_result(run, message if message["content"] else None)

    await _append(run, message)
    if stop == "max_tokens":
        raise MaxTokensReachedException(
            "the answer was cut at the model's token limit: raise its max_tokens or ask for less; "
            "the partial answer is in agent.messages"
        )

    uses = tool_uses(message)
    if uses:
        done = await run_tools(run, uses, outcome)
        _check_names(run, uses)
        return await _after_tools(run, done)

    more = await run.hooks.decide_continue(message, run.agent)
    if more:
        run.history.add_user(more)
        await run.commit()
        return None

    return AgentResult(stop, message, run.metrics, run.state)


def _check_names(run: Run, uses: list[ToolUse]) -> None:
    """Ends a run whose model never names a tool: it would go on, and be paid for, without end."""
    registry = run.agent.tool_registry
    named = any(registry.get(use["name"]) or is_legal_tool_name(use["name"]) for use in uses)
    run.nameless_turns = 0 if named else run.nameless_turns + 1
    if run.nameless_turns >= _NAMELESS_TURNS:
        raise ModelError(
            f"the model asked for tools without a usable name {_NAMELESS_TURNS} turns in a row: "
            "check its chat template, or use another model"
        )


async def _after_tools(run: Run, done: ToolsOutcome) -> AgentResult | None:
    """Cancel beats a stop by a hook; both beat going on."""
    if run.cancelled:
        return cancelled_result(run, last_assistant(run))

    if done.end_turn is not None:
        content: list[ContentBlock] = (
            [{"text": done.end_turn}] if isinstance(done.end_turn, str) else list(done.end_turn)
        )
        message: Message = {"role": "assistant", "content": content}
        if run.hooks.plan.intervene:
            message = await gates.last_look_at_message(run, message)

        await _append(run, message)
        return AgentResult("end_turn", message, run.metrics, run.state)

    if run.hooks.plan.manage_context:
        await context.manage(run, "after_tools")

    return None


async def _append(run: Run, message: Message) -> None:
    run.history.add_assistant(message)
    run.contributed = True
    if run.journal:
        run.journal.add("model_ended", {"cycle": run.cycle, "attempt": run.attempt})
        await run.commit()

    if run.followed:
        await run.emit(MessageAdded(message))


def last_assistant(run: Run) -> Message:
    """The last thing the agent said; an empty message when it said nothing yet."""
    for message in reversed(run.history.messages):
        if message["role"] == "assistant":
            return message

    return {"role": "assistant", "content": []}


def cancelled_result(run: Run, message: Message | None = None) -> AgentResult:
    """The result of a cancelled run; its message says so when the model said nothing."""
    reason: StopReason = "cancelled"
    synthetic: Message = {"role": "assistant", "content": [{"text": CANCELLED_TEXT}]}
    return AgentResult(reason, message or synthetic, run.metrics, run.state)
