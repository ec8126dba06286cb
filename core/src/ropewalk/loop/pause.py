"""Pausing a run and going on with it: what is kept, what a resume is checked against, and where it sets in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ropewalk.errors import MissingPluginError
from ropewalk.kits.calls.outcomes import ModelOutcome
from ropewalk.kits.hooks.origin import versions_of
from ropewalk.kits.hooks.parameters import distribution_of
from ropewalk.kits.json_values import packed, unpacked
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN, tool_uses
from ropewalk.kits.result import AgentResult
from ropewalk.kits.suspension import (
    Interrupt,
    ResumeError,
    Suspend,
    Suspension,
)
from ropewalk.kits.suspension.answers import NO_PAYLOAD, answered, checked_form
from ropewalk.kits.suspension.calls import CallsUnderWay
from ropewalk.kits.suspension.changes import refuse_changes
from ropewalk.tools import error_result
from ropewalk.types import ContentBlock, Message

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.run import Run


async def accept(agent: Agent, prompt: Any) -> Suspension | None:
    """The pause that a prompt goes on from, with its answers; None when the prompt begins a new run.

    Raises:
        ResumeError: The prompt does not fit the agent's pause, or the agent has changed since. The pause stays.
        MissingPluginError: A checkpoint is to be resumed, and nobody does that here.
    """
    pause = agent.suspension
    payload = checked_form(prompt, paused=pause is not None)
    if payload is not NO_PAYLOAD and (agent.hooks.plan.resume_run or pause is None or pause.kind != "interrupt"):
        await _check_payload(agent, payload, pause)
    elif pause is None:
        return None
    elif pause.kind == "interrupt":
        pause = answered(pause, prompt)
    elif prompt is not None:
        return None  # a new prompt: what is open is closed

    if pause is not None:
        check_unchanged(agent, pause)

    return pause


async def _check_payload(agent: Agent, payload: Any, pause: Suspension | None) -> None:
    if not agent.hooks.plan.resume_run:
        wanted, distribution = 'the prompt {"checkpointResume": ...}', str(distribution_of("checkpointing"))
        raise MissingPluginError(wanted, distribution, hint="make the agent with checkpointing=True")

    if not await agent.hooks.resume_run(payload, pause, agent):
        raise ResumeError("no plugin takes this checkpoint: pass the one of the last result")


def check_unchanged(agent: Agent, pause: Suspension) -> None:
    """Refuses to go on when the agent is not as it was.

    Raises:
        ResumeError: The history, the tools that wait, or the plugins differ; CheckpointException for a checkpoint.
    """
    history = agent.history
    refuse_changes(pause, len(history.messages), history.digest(), agent.tool_registry.names, versions_of(agent.hooks))


# -- going on ----------------------------------------------------------------------------------------------------


def restore(run: Run, pause: Suspension) -> None:
    """Brings a run to where it was paused."""
    run.position, run.cycle, run.attempt = pause.position, pause.cycle, pause.attempt
    run.answers = pause.answers
    run.once_results, run.state = dict(pause.once), dict(pause.state)
    restore_tools(run, pause)
    run.contributed = pause.position != "input"
    run.outcome_gated = pause.model_gated
    if pause.model is not None:
        run.outcome = ModelOutcome(**pause.model)
    elif pause.position == "tools":
        run.outcome = ModelOutcome(run.history.messages[-1], "tool_use", input_errors=pause.input_errors)


def restore_tools(run: Run, pause: Suspension | None) -> None:
    """Takes over what is known of the tool calls that were open."""
    if pause is None:
        return

    calls = run.calls = CallsUnderWay()
    calls.kept = {use: unpacked(packed(result)) for use, result in pause.finished.items()}
    calls.effects = {use: list(effects) for use, effects in pause.effects.items()}
    calls.unknown, calls.memos = dict(pause.unknown), dict(pause.memos)
    calls.logged = {**{use: effects[-1].result for use, effects in calls.effects.items() if effects}, **calls.kept}


def close_open(run: Run, text: str) -> None:
    """Answers the tool uses that are open in the history: with what their tools came to, else with an error.

    Args:
        run: Whose history it is.
        text: What the model is told of a use whose tool was not started.
    """
    blocks: list[ContentBlock] = []
    for use_id in run.history.open_uses:
        known = run.calls.known(use_id)
        untold = error_result(use_id, OUTCOME_UNKNOWN if {use_id} & {*run.calls.unknown, *run.calls.effects} else text)
        blocks.append({"toolResult": known or untold})

    if blocks:
        run.history.add_user(blocks)


# -- pausing -----------------------------------------------------------------------------------------------------


def paused_by(run: Run, suspend: Suspend, result: AgentResult | None = None) -> AgentResult:
    """Pauses the run with the questions of `suspend`; `result` is the one that hooks were about to give.

    Raises:
        RuntimeError: Two places ask under one name, so that an answer could not be told apart.
    """
    add_questions(run, suspend)
    if run.paused is None or not run.paused.interrupts:
        end = None if result is None else {"stop_reason": result.stop_reason, "message": result.message}
        if end is None and run.position == "end" and run.resumed is not None:
            end = run.resumed.result

        position = "end" if result is not None else run.position
        run.paused = _pause(run, "interrupt", interrupts=run.interrupts, result=end, position=position)
    else:
        asked = tuple(run.interrupts)
        run.paused = replace(run.paused, interrupts=asked, state=packed(run.state), once=dict(run.once_results))

    return _result(run, "interrupt")


def add_questions(run: Run, suspend: Suspend) -> None:
    """Takes the questions of a hook or tool into the run's.

    Raises:
        ValueError: A name was used twice in one place.
    """
    for each in suspend.interrupts:
        if any(other.id == each.id for other in run.interrupts):
            raise ValueError(f"interrupt {each.name!r} is asked twice in one place: give each question its own name")

        run.interrupts += (each,)


def paused_at(run: Run, checkpoint: Any) -> AgentResult:
    """Pauses the run at a checkpoint."""
    plain = checkpoint.to_dict() if hasattr(checkpoint, "to_dict") else checkpoint
    run.paused = _pause(run, "checkpoint", position=run.position, checkpoint=plain)
    result = _result(run, "checkpoint")
    result.checkpoint = checkpoint
    return result


def _pause(run: Run, kind: Any, **fields: Any) -> Suspension:
    outcome, history, registry, calls = run.outcome, run.history, run.agent.tool_registry, run.calls
    at_tools = run.position == "tools"
    named = [use["name"] for use in history.open_uses.values()] if at_tools else []
    done = {**calls.kept, **calls.finished} if history.open_uses else {}
    return Suspension(
        kind=kind,
        run=run.id,
        cycle=run.cycle,
        attempt=run.attempt,
        answers=run.answers,
        input=packed(list(run.input)) if run.position == "input" else [],
        model=outcome.to_dict() if outcome is not None and run.position in ("model", "answered") else None,
        model_gated=run.outcome_gated,
        finished=done,
        effects={use: effects for use, effects in calls.effects.items() if use not in done and history.open_uses},
        unknown=dict(calls.unknown),
        memos=dict(calls.memos),
        input_errors=dict((outcome.input_errors if outcome is not None else None) or {}) if at_tools else {},
        state=packed(run.state),
        once=run.once_results,
        digest=history.digest(),
        length=len(history.messages),
        tools=tuple(name for name in named if registry.get(name) is not None),
        plugins=versions_of(run.hooks),
        records=run.journal.number + 1 if run.journal else 0,
        **fields,
    )


def _result(run: Run, reason: str) -> AgentResult:
    uses = run.history.messages[-1] if run.history.messages else None
    message: Message = uses if uses is not None and tool_uses(uses) else last_said(run)
    interrupts: list[Interrupt] | None = list(run.interrupts) if reason == "interrupt" else None
    return AgentResult(reason, message, run.metrics, run.state, interrupts)


def last_said(run: Run) -> Message:
    """The last thing the agent said; an empty message when it said nothing yet."""
    for message in reversed(run.history.messages):
        if message["role"] == "assistant":
            return message

    return {"role": "assistant", "content": []}
