"""The innermost step of a tool call: run the tool, and turn whatever happens into one result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropewalk.kits.aio.isolation import Isolated
from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.json_values import packed, strict_json
from ropewalk.kits.messages.results import checked_result, error_text
from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk.kits.suspension import Effect, Suspend
from ropewalk.kits.suspension.after_crash import after_crash
from ropewalk.loop import gates
from ropewalk.loop.pause import add_questions
from ropewalk.tools import Tool, ToolCall, effect_of, error_result
from ropewalk.types import ToolResult

if TYPE_CHECKING:
    from ropewalk.kits.suspension.calls import CallsUnderWay
    from ropewalk.run import Run

CANCELLED_BEFORE = "Tool execution cancelled"
CANCELLED_DURING = "Tool execution cancelled while it ran; it may or may not have taken effect"


async def run_tool(run: Run, call: ToolCall) -> ToolResult:
    """Runs one call through the `around_tool_call` chain. What executors get as `run_tool`.

    It never raises an `Exception`: an error in a hook is noted, stops the run after the batch, and becomes an error
    result here, so that the history stays valid and finished siblings keep their results. A call that was done before
    a pause is not run again.

    Raises:
        Suspend: The call waits for an answer.
    """
    use_id, calls = call.tool_use["toolUseId"], run.calls
    if use_id in calls.kept:
        return for_hooks(run, calls.kept[use_id])

    cancellation = run.cancellation
    task = asyncio.current_task()
    parked = cancellation.park(task)
    try:
        if cancellation.requested or run.batch_failure is not None:
            result = calls.known(use_id) or error_result(use_id, unfinished(run, use_id))
        else:
            result = await run.tool_chain(call)
            if result is not calls.finished.get(use_id):  # what the innermost step answered is checked already
                result = checked_result(result, call.tool_use)
    except asyncio.CancelledError:
        if not cancellation.claim():
            raise

        result = calls.known(use_id) or error_result(use_id, unfinished(run, use_id))
    except Suspend as suspend:
        _pause(run, call, suspend)
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again by the tools step
        _fail(run, error)
        result = calls.known(use_id) or error_result(use_id, unfinished(run, use_id))
    finally:
        cancellation.settle()
        if parked:
            cancellation.unpark(task)

        task = None  # a frame that an error keeps should not hold it: see `Cancellation`

    calls.finished[use_id] = result
    return for_hooks(run, result)


def for_hooks(run: Run, result: ToolResult) -> ToolResult:
    """The result as hooks get it: one that they may write to, which changes neither the log nor what a pause keeps."""
    plan = run.hooks.plan
    return plain_copy(result) if plan.around_tool_call or plan.around_tools else result


def _pause(run: Run, call: ToolCall, suspend: Suspend) -> None:
    """Notes that a call waits; what its tool came to, if it ran, is kept in `run.calls.effects`."""
    use_id, calls = call.tool_use["toolUseId"], run.calls
    calls.finished.pop(use_id, None)
    calls.memos.pop(use_id, None)
    if suspend.memo is not None:
        calls.memos[use_id] = packed(suspend.memo)

    calls.waiting.append((call.tool_use, suspend.interrupts))
    try:
        add_questions(run, suspend)
    except ValueError as error:
        _fail(run, error)


async def invoke_tool(run: Run, call: ToolCall) -> ToolResult:
    """Runs the tool itself: the end of the `around_tool_call` chain."""
    refused = _refused(run, call)
    if refused is not None:
        return refused

    use_id = call.tool_use["toolUseId"]
    if run.hooks.plan.intervene:
        call, refused = await gates.before_tool(run, call)
        if refused is not None:
            return refused

    calls = run.calls
    call.attempt = calls.started.get(use_id, 0) + 1
    effects = calls.effects.setdefault(use_id, [])
    if len(effects) >= call.attempt:
        return await _known(run, call, calls)

    if use_id in calls.unknown:
        settled = after_crash(call)  # which may ask, and then is asked again
        del calls.unknown[use_id]
        if settled is not None:
            _note_end(run, call, calls, settled)
            await run.commit()
            return for_hooks(run, settled)

    return await _effect(run, call, calls)


def _refused(run: Run, call: ToolCall) -> ToolResult | None:
    """The error result of a call that cannot reach a tool."""
    use_id, name = call.tool_use["toolUseId"], call.tool_use["name"]
    if run.cancelled or run.batch_failure is not None:  # a hook that was interrupted goes on all the same
        return run.calls.known(use_id) or error_result(use_id, unfinished(run, use_id))

    if call.input_error is not None:
        return error_result(use_id, f"Error: {call.input_error}. Send the arguments as one JSON object.")

    if call.tool is not None:
        return None

    known = is_legal_tool_name(name)
    return error_result(
        use_id, f"Unknown tool: {name}" if known else f"Error: tool_name=<{name}> | invalid tool name pattern"
    )


async def _effect(run: Run, call: ToolCall, calls: CallsUnderWay) -> ToolResult:
    """Runs the tool: a record that it starts, its body, the output gate, a record of what came of it."""
    tool, use_id = call.tool, call.tool_use["toolUseId"]
    if tool is None:
        raise RuntimeError("a call without a tool has passed the gates")

    if run.journal:
        effect = effect_of(tool)
        started = {
            "tool_use": strict_json(call.tool_use),
            "effect": effect,
            "attempt": call.attempt,
            "cycle": run.cycle,
        }
        run.journal.add("tool_started", started)
        if effect != "pure":  # which may as well run again
            await run.commit()

        if run.cancelled:  # while it was written, which is not interrupted
            return error_result(use_id, unfinished(run, use_id))

    calls.started[use_id] = call.attempt
    began = run.now()
    result = await _outcome(run, call, tool)
    if run.hooks.plan.intervene:
        effects = calls.effects[use_id]
        effects.append(Effect(result, gated=False))  # what is there when a gate pauses the run
        result = await _gated(run, result)
        effects.pop()

    run.metrics.add_tool(call.tool_use["name"], run.now() - began, success=result["status"] == "success")
    _note_end(run, call, calls, result)
    if run.journal:
        await run.commit()

    return for_hooks(run, result)


def _note_end(run: Run, call: ToolCall, calls: CallsUnderWay, result: ToolResult) -> None:
    """Takes note of what came of a call, in the log too."""
    use_id = call.tool_use["toolUseId"]
    calls.effects[use_id].append(Effect(result))
    calls.finished[use_id] = result
    if run.journal:
        calls.logged[use_id] = result
        run.journal.add("tool_ended", {"id": use_id, "attempt": call.attempt, "result": result})


async def _known(run: Run, call: ToolCall, calls: CallsUnderWay) -> ToolResult:
    """What the tool came to before the run was paused: the effect is not repeated."""
    use_id = call.tool_use["toolUseId"]
    effects = calls.effects[use_id]
    effect = effects[call.attempt - 1]
    result = effect.result
    if not effect.gated and run.hooks.plan.intervene:
        result = await _gated(run, result)

    effects[call.attempt - 1] = Effect(result)
    calls.started[use_id] = call.attempt
    calls.finished[use_id] = result
    return for_hooks(run, result)


async def _gated(run: Run, result: ToolResult) -> ToolResult:
    """The result as it passed the gates; one that could not be judged is withheld, and the error stops the run."""
    try:
        return await gates.after_tool(run, result)
    except Exception as error:  # noqa: BLE001 - raised again by the tools step
        _fail(run, error)
        return error_result(result["toolUseId"], f"The result is withheld: {type(error).__name__}")


async def _outcome(run: Run, call: ToolCall, tool: Tool) -> ToolResult:
    use_id = call.tool_use["toolUseId"]
    run.errors.pop(use_id, None)
    try:
        return checked_result(await Isolated(tool.invoke(call)), call.tool_use)
    except asyncio.CancelledError as error:
        if run.cancellation.claim():
            return error_result(use_id, unfinished(run, use_id))

        if run.cancellation.comes_from_outside():
            raise

        call.error = error
        return error_result(use_id, error_text(error))
    except (SystemExit, KeyboardInterrupt) as error:
        # A task that ends in one of these tears down its event loop with every other run on it: it travels as a value.
        _fail(run, error)
        return error_result(use_id, error_text(error))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model is told
        call.error = error
        return error_result(use_id, error_text(error))


def _fail(run: Run, error: BaseException) -> None:
    """Notes what will be raised once the batch is answered, and interrupts the calls that still run."""
    if run.batch_failure is None:
        run.batch_failure = error
        run.cancellation.interrupt_parked(but=asyncio.current_task())


def unfinished(run: Run, use_id: str) -> str:
    """What the model is told about a call without a result: whether it was started, and what stopped it."""
    error, started = run.batch_failure, run.calls.was_started(use_id)
    if error is None:
        return CANCELLED_DURING if started else CANCELLED_BEFORE

    state = "the call may or may not have taken effect" if started else "the call was never started"
    return f"The run was stopped by {type(error).__name__}; {state}"
