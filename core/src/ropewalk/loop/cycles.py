"""The cycles of one run: stop?, manage the context, call the model, run the tools, again. Depth never grows."""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Final, cast

from ropewalk.errors import MaxTokensReachedException, ModelError
from ropewalk.kits.calls.invocation import Cycle
from ropewalk.kits.calls.outcomes import ModelOutcome, Stop
from ropewalk.kits.events import CycleStarted, MessageAdded
from ropewalk.kits.messages.rules import checked_said, is_legal_tool_name, tool_uses
from ropewalk.kits.result import AgentResult
from ropewalk.kits.suspension import Suspend
from ropewalk.loop import context
from ropewalk.loop.model_step import call_model
from ropewalk.loop.model_turn import model_turn
from ropewalk.loop.pause import last_said, paused_at, paused_by
from ropewalk.loop.tool_step import invoke_tool
from ropewalk.loop.tools_step import execute_batch, run_tools
from ropewalk.types import ContentBlock, Message, StopReason, ToolUse

if TYPE_CHECKING:
    from ropewalk.run import Run

_NAMELESS_TURNS: Final = 8  # a bound on a fault, not a budget: a model that can name a tool does so at once
CANCELLED_TEXT = "Cancelled by user"


def compose(run: Run) -> None:
    """Builds the run's chains around their innermost steps, once per set of hooks."""
    hooks, agent = run.hooks, run.agent
    run.model_chain = hooks.around_model_call(MethodType(call_model, run), agent)
    run.tools_chain = hooks.around_tools(MethodType(execute_batch, run), agent)
    run.tool_chain = hooks.around_tool_call(MethodType(invoke_tool, run), agent)


async def run_cycles(run: Run) -> AgentResult:
    """Runs cycles, from where the run is, until something ends it.

    Raises:
        MaxTokensReachedException: The answer was cut at the token limit.
        Suspend: A hook asks the caller of the agent.
        Exception: A model's error that nobody retries, or a hook's.
    """
    compose(run)
    began = run.now()
    while True:
        result: AgentResult | None = None
        if run.position == "cycle":
            began = run.now()
            result = await _begin_cycle(run)

        if run.position == "model":
            await _store(run, await model_turn(run))

        if run.position == "answered":
            result = await _after_model(run)

        if run.position == "tools" and result is None:
            result = await _tools(run)

        if run.position == "after_tools" and result is None:
            if run.hooks.managers["after_tools"]:
                await context.manage(run, "after_tools")

            run.position = "cycle"

        if run.cycle >= len(run.metrics.cycle_durations):
            run.metrics.cycle_durations.append(run.now() - began)

        if result is not None:
            return result


async def _begin_cycle(run: Run) -> AgentResult | None:
    """The top of a cycle: a result, or the run stands before its model call."""
    run.resumed = None
    if run.cancelled:
        return cancelled_result(run)

    if run.hooks.plan.decide_stop:
        spent = run.now() - run.metrics.started
        cycle = Cycle(run.cycle + 1, run.options, run.metrics, spent)
        stop = await run.hooks.decide_stop(cycle, run.agent)
        if stop is not None:
            return _stopped(run, stop)

    if run.agent.hooks is not run.hooks:
        run.use_hooks(run.agent.hooks)
        compose(run)

    if run.followed:
        await run.emit(CycleStarted(run.cycle + 1))

    if run.hooks.managers["before_model"]:
        await context.manage(run, "before_model")

    run.cycle += 1
    run.metrics.cycle_count += 1
    run.position = "model"
    return None


def _stopped(run: Run, stop: Stop) -> AgentResult:
    run.state.update(stop.state)
    return AgentResult(stop.stop_reason, last_said(run), run.metrics, run.state)


async def _store(run: Run, outcome: ModelOutcome) -> None:
    """Puts the model's message into the history."""
    if outcome.redact_input:
        run.history.redact_last_input(outcome.redact_input)

    run.outcome, run.outcome_gated, run.position = outcome, True, "answered"  # it is, whatever a write raises
    if outcome.message["content"] or outcome.stop_reason != "cancelled":
        _put(run, outcome.message)
        if run.journal or run.followed:
            await _tell(run, outcome.message)

        if outcome.usage["totalTokens"]:
            run.history.tokens.observe(outcome.usage, run.history.messages[-1])


async def _after_model(run: Run) -> AgentResult | None:
    """Carries out what the model's message asks for; a result ends the run."""
    outcome = run.outcome
    message, stop = (outcome.message, outcome.stop_reason) if outcome is not None else (last_said(run), "end_turn")
    if stop == "cancelled":
        return cancelled_result(run, message if message["content"] else None)

    if stop == "max_tokens":
        raise MaxTokensReachedException(
            "the answer was cut at the model's token limit: raise its max_tokens or ask for less; "
            "the partial answer is in agent.messages"
        )

    if tool_uses(message):
        run.position = "tools"
        return await _checkpoint(run, "after_model") if run.hooks.plan.emit_checkpoint else None

    more = await run.hooks.decide_continue(message, run.agent) if run.hooks.plan.decide_continue else None
    if more:
        run.history.add_user(checked_said(more, "decide_continue"))
        run.position = "cycle"
        await run.commit()
        return None

    return AgentResult(stop, message, run.metrics, run.state)


async def _checkpoint(run: Run, position: str) -> AgentResult | None:
    if run.cancelled or run.history is not run.agent.history:
        return None  # a run beside another one does not pause: its history is not the agent's

    checkpoint = await run.hooks.emit_checkpoint(position, run.cycle, run.agent)
    return None if checkpoint is None else paused_at(run, checkpoint)


def _check_names(run: Run, uses: list[ToolUse]) -> None:
    """Ends a run whose model never names a tool: it would go on, and be paid for, without end."""
    registry = run.agent.tool_registry
    for use in uses:
        if registry.get(use["name"]) is not None or is_legal_tool_name(use["name"]):
            run.nameless_turns = 0
            return

    run.nameless_turns += 1
    if run.nameless_turns >= _NAMELESS_TURNS:
        raise ModelError(
            f"the model asked for tools without a usable name {_NAMELESS_TURNS} turns in a row: "
            "check its chat template, or use another model"
        )


async def _tools(run: Run) -> AgentResult | None:
    """Runs the tools; what ends the run beats one another in this order: interrupt, cancel, a hook, its stop."""
    uses = list(run.history.open_uses.values())
    done = await run_tools(run, uses)
    if done is None:
        return paused_by(run, Suspend(()))

    _check_names(run, uses)
    run.position, run.outcome = "after_tools", None
    if run.cancelled:
        return cancelled_result(run, last_said(run))

    if done.end_turn is not None:
        message: Message = {"role": "assistant", "content": cast("list[ContentBlock]", done.end_turn)}
        _put(run, message)
        await _tell(run, message)
        return AgentResult("end_turn", message, run.metrics, run.state)

    if done.stop is not None:
        return _stopped(run, done.stop)

    return await _checkpoint(run, "after_tools") if run.hooks.plan.emit_checkpoint else None


def _put(run: Run, message: Message) -> None:
    run.history.add_assistant(message)
    run.contributed = True


async def _tell(run: Run, message: Message) -> None:
    """Tells the log and the followers of a message."""
    await run.commit()
    if run.followed:
        await run.emit(MessageAdded(message))


def cancelled_result(run: Run, message: Message | None = None) -> AgentResult:
    """The result of a cancelled run; its message says so when the model said nothing."""
    reason: StopReason = "cancelled"
    synthetic: Message = {"role": "assistant", "content": [{"text": CANCELLED_TEXT}]}
    return AgentResult(reason, message or synthetic, run.metrics, run.state)
