"""One call of an agent from admission to result. Outermost step of the loop."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING
from weakref import ref

from ropewalk.errors import ConcurrencyException, InvalidPromptError, PluginError
from ropewalk.kits.aio.channel import Channel
from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.calls.invocation import REENTRANT, CallOptions, Denied, Invocation
from ropewalk.kits.calls.verdicts import Refuse
from ropewalk.kits.events import RunEnded, RunFailed, RunStarted, StructuredOutputFilled
from ropewalk.kits.hooks.policy import policy_digest
from ropewalk.kits.json_values import unpacked
from ropewalk.kits.log.records import BESIDE
from ropewalk.kits.messages.differences import Mark
from ropewalk.kits.messages.prompt import prompt_messages
from ropewalk.kits.messages.rules import NEVER_STARTED, checked_message
from ropewalk.kits.result import AgentResult
from ropewalk.kits.suspension import ResumeError, Suspend
from ropewalk.loop import context, gates
from ropewalk.loop.cycles import cancelled_result, run_cycles
from ropewalk.loop.log import begin_log, end_log
from ropewalk.loop.pause import accept, close_open, paused_by, restore, restore_tools
from ropewalk.loop.tool_step import CANCELLED_BEFORE
from ropewalk.run import Run, under_way
from ropewalk.types import Message

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.loop")


async def invoke(agent: Agent, options: CallOptions, channel: Channel | None = None) -> AgentResult:
    """Runs one call in the current task.

    Raises:
        ConcurrencyException: The agent is busy.
        InvalidPromptError: The prompt has none of the accepted forms.
        ResumeError: The prompt does not fit the agent's pause, which stays as it is.
        Exception: What a model or a hook raised.
    """
    agent.check_open()
    agent.hooks.check_call(options, agent)
    resumed = await accept(agent, options.prompt)
    messages = prompt_messages(options.prompt) if resumed is None else ()
    run = Run(agent, options, agent.hooks, agent.history, channel, resumed)
    if not agent.claim(run):
        answer = await agent.hooks.admit(options, agent)
        if isinstance(answer, AgentResult):
            return answer

        if answer is REENTRANT and resumed is None:  # a paused run goes on in the agent's own history
            return await _beside(run, messages)

        raise ConcurrencyException(
            f"agent {agent.name!r} is busy with another invocation: wait for it, or use one agent per conversation"
        )

    try:
        return await _admitted(run, messages)
    finally:
        agent.release(run)


async def _beside(run: Run, messages: tuple[Message, ...]) -> AgentResult:
    """Runs on a branch of the history; what it added is appended as one block when it ends."""
    agent = run.agent
    head, run.history = run.history, run.history.branch()
    base = list(run.history.messages)
    own = run.journal
    run.journal = own.nested(run.id, f"{BESIDE}{run.id}") if own is not None else None
    agent.join(run)
    try:
        return await _admitted(run, messages)
    finally:
        agent.release(run)
        head.append_block(run.history, base, own if agent.log is not None and agent.log.agrees else None)
        await run.commit()


async def _admitted(run: Run, messages: tuple[Message, ...]) -> AgentResult:
    token = under_way.set(ref(run))
    try:
        await begin_log(run)  # not parked: a cancel waits until it is written
        run.cancellation.park()
        try:
            result = await _to_its_end(run, messages)
        except BaseException as error:
            await _close_after(run, error)
            raise
        else:
            if run.paused is not None and run.history is run.agent.history:
                run.agent.suspension = run.paused

            return result
        finally:
            await end_log(run)
    finally:
        under_way.reset(token)
        run.cancellation.end()
        run.cancellation.unpark()
        let_go(run)


async def _to_its_end(run: Run, messages: tuple[Message, ...]) -> AgentResult:
    _check_there_is_input(run, messages)
    try:
        await run.agent.initialise()
        if run.followed:
            await run.emit(RunStarted(run.id))

        if run.resumed is not None:
            restore(run, run.resumed)
        elif _waits(run):
            restore_tools(run, run.agent.suspension)

        result = await _through_hooks(run, messages)
    except asyncio.CancelledError:
        result = _cancelled(run)

    if run.hooks.managers["after_invocation"] and run.paused is None:
        try:
            with run.cancellation:
                await context.manage(run, "after_invocation")
        except Suspend as suspend:
            result = paused_by(run, suspend, result)

    _note_end(run, result.stop_reason)
    with run.cancellation:
        await run.commit()
        if run.followed:
            if result.structured_output is not None:
                await run.emit(StructuredOutputFilled(result.structured_output))

            await run.announce_end(RunEnded(result))

    return result


def _take_pause(run: Run) -> None:
    """The agent's pause ends: the run goes on from it, or a new prompt closes what it had left open."""
    agent, answers = run.agent, run.answers
    agent.suspension = None
    if run.resumed is None or run.resumed.position == "input":
        close_open(run, NEVER_STARTED)
        run.forget_tools()
        run.answers = answers
        if agent.log is not None:
            agent.log.nested = {}

    if run.resumed is not None and run.journal:
        run.journal.add("run_resumed", {"answers": run.resumed.answers})


def _waits(run: Run) -> bool:
    """Whether the agent's pause was not taken up: what the history has open belongs to it."""
    return run.history is run.agent.history and run.agent.suspension is not None


def _cancelled(run: Run) -> AgentResult:
    """Turns the CancelledError in hand into a result if it is the run's own, and raises it again if it is not."""
    if not run.cancellation.claim():
        raise  # noqa: PLE0704 - called while it is handled

    if run.paused is None and not _waits(run):
        close_open(run, CANCELLED_BEFORE)

    return cancelled_result(run)


def _check_there_is_input(run: Run, messages: tuple[Message, ...]) -> None:
    if not messages and not run.history.messages and run.resumed is None:
        raise InvalidPromptError("there is no prompt and no history to go on with: pass a prompt")


async def _close_after(run: Run, error: BaseException) -> None:
    """Leaves a valid history and a complete log behind a run that failed."""
    before = run.agent.suspension if run.paused is not None and _waits(run) else None
    if before is not None and run.journal:  # the run's own run_suspended may be written already: this one counts
        run.journal.add("run_suspended", before.to_dict())

    run.paused = None
    if not _waits(run):
        close_open(run, CANCELLED_BEFORE if isinstance(error, asyncio.CancelledError) else NEVER_STARTED)

    _note_end(run, f"error: {type(error).__name__}")
    if isinstance(error, Exception | asyncio.CancelledError):
        await run.commit()

    if run.followed and isinstance(error, Exception):
        try:
            await run.announce_end(RunFailed(error))
        except Exception:
            # perhaps the very follower whose error this is: the caller gets the first one
            logger.exception("a follower of run %s failed on being told that the run failed", run.id)


async def _through_hooks(run: Run, messages: tuple[Message, ...]) -> AgentResult:
    chain = run.hooks.around_invocation(MethodType(_run, run), run.agent)
    pause = run.resumed
    kept = () if pause is None else tuple(checked_message(each, "the paused input") for each in unpacked(pause.input))
    run.input = messages or kept
    try:
        result = await chain(Invocation(tuple(run.input), run.options, resumed=pause is not None))
        if isinstance(result, Denied):
            message: Message = {"role": "assistant", "content": [{"text": result.text}]}
            result = AgentResult("end_turn", message, run.metrics, run.state)

        if isinstance(result, AgentResult) and run.hooks.plan.intervene:
            result.message = await gates.last_look_at_message(run, result.message)
    except Suspend as suspend:
        return paused_by(run, suspend, run.result)

    if not isinstance(result, AgentResult):
        raise PluginError(
            f"around_invocation returned {type(result).__name__}: return what call_next returned, or Denied(text)"
        )

    return result


async def _run(run: Run, invocation: Invocation) -> AgentResult | Denied:
    """The innermost step. Hooks get a message that they may write to, which changes neither history nor pause."""
    result = await _from_input(run, invocation)
    if run.hooks.plan.around_invocation and isinstance(result, AgentResult):
        return replace(result, message=plain_copy(result.message))

    return result


async def _from_input(run: Run, invocation: Invocation) -> AgentResult | Denied:
    """Appends the input, runs the cycles, and takes the input back when nothing came of it."""
    pause = run.resumed
    if _waits(run):
        _take_pause(run)

    if pause is not None and pause.position == "end":
        run.resumed = None
        if pause.result is None:
            raise ResumeError("the run was paused at its end, and its result is not there: start anew with a prompt")

        result = AgentResult(pause.result["stop_reason"], pause.result["message"], run.metrics, run.state)
        run.result = result  # hooks further out may ask as well
        return result

    history, mark = run.history, None
    if pause is None or pause.position == "input":
        run.resumed, run.position, run.contributed = None, "input", False
        refusal = await _stored(run, invocation)
        if isinstance(refusal, Denied):
            return refusal

        mark = refusal

    done = False
    try:
        await run.commit()
        result = await run_cycles(run)
        done = result.stop_reason != "cancelled"
    except asyncio.CancelledError:
        return _cancelled(run)
    except Suspend as suspend:
        done = True
        return paused_by(run, suspend)
    else:
        run.result = None if run.paused is not None else result
        return result
    finally:
        if mark is not None and not done and not run.contributed:
            history.rollback(mark)


async def _stored(run: Run, invocation: Invocation) -> Mark | Denied:
    """Puts the input into the history; where to roll back to, or the refusal."""
    if run.hooks.plan.intervene:
        invocation, refusal = await run.hooks.intervene("before_invocation", invocation, run.agent)
        if isinstance(refusal, Refuse):
            run.passed_message = {"role": "assistant", "content": [{"text": gates.denied(refusal)}]}
            return Denied(gates.denied(refusal))

    if run.journal:
        keys = sorted(map(str, run.invocation_state))
        run.journal.add("run_started", {"invocation_state": keys, "policies": policy_digest()})

    if run.paused is not None:  # a hook calls on again instead of waiting for answers
        close_open(run, NEVER_STARTED)
        run.paused, run.interrupts = None, ()

    mark = run.history.add_input(invocation.messages)
    run.position = "cycle"
    return mark


def _note_end(run: Run, reason: str) -> None:
    if run.journal is None or (run.paused is None and _waits(run)):
        return  # the pause was not taken up: for the log, nothing has happened

    if run.paused is not None:
        run.journal.add("run_suspended", run.paused.to_dict())
    else:
        run.journal.add("run_ended", {"stop_reason": reason})


def let_go(run: Run) -> None:
    """Drops what refers to the run and what the run refers to: nobody should wait for the collector."""
    run.lose_followers()
    run.batch_failure = run.model_error = run.delta_error = None
    run.errors = {}
    for chain in ("model_chain", "tools_chain", "tool_chain"):
        if hasattr(run, chain):
            delattr(run, chain)
