"""The tools of one model message: run them, and answer every use once, in order."""

from __future__ import annotations

import asyncio
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn

from ropewalk.errors import PluginError
from ropewalk.kits.calls.outcomes import ToolsOutcome
from ropewalk.kits.events import MessageAdded, ToolPaused, ToolsStarting
from ropewalk.kits.messages.results import checked_result
from ropewalk.kits.messages.rules import checked_closing
from ropewalk.kits.suspension import Suspend
from ropewalk.loop import gates
from ropewalk.loop.pause import add_questions
from ropewalk.loop.tool_step import for_hooks, run_tool, unfinished
from ropewalk.tools import ToolBatch, ToolCall, error_result
from ropewalk.types import ContentBlock, ToolResult, ToolUse

if TYPE_CHECKING:
    from ropewalk.run import Run


async def run_tools(run: Run, uses: list[ToolUse]) -> ToolsOutcome | None:
    """Runs the uses and appends the one message with their results; None when calls wait for answers.

    Raises:
        BaseException: What a hook raised, or a tool's SystemExit or KeyboardInterrupt, once the results are in place.
    """
    tools = run.agent.tool_registry
    problems = (run.outcome.input_errors if run.outcome is not None else None) or {}
    calls = tuple([ToolCall(run, use, tools.get(use["name"]), problems.get(use["toolUseId"])) for use in uses])
    run.calls = run.calls.begun(resumed=run.resumed is not None)
    run.errors, run.resumed = {}, None
    run.batch_failure = None
    done: ToolsOutcome | None = None
    try:
        done = await _through_hooks(run, calls)
    except Suspend as suspend:
        add_questions(run, suspend)
    except asyncio.CancelledError:
        if not run.cancellation.claim():
            _append(run, calls, None)
            raise
    except BaseException as error:
        run.batch_failure = run.batch_failure or error
        _append(run, calls, None)
        if not isinstance(error, GeneratorExit):  # a coroutine that is thrown away may not wait for anything
            await run.commit()

        raise

    if run.interrupts and run.batch_failure is None:
        if run.hooks.plan.intervene:
            await _look_at_finished(run)

        await _tell_paused(run)
        return None

    results = _append(run, calls, done)
    run.forget_tools()  # what the journal holds now is written with what comes next
    if run.batch_failure is not None:
        await run.commit()
        _raise_failure(run)

    run.check_followers()
    if run.followed:
        await run.emit(MessageAdded(run.history.messages[-1]))

    return ToolsOutcome(results) if done is None else ToolsOutcome(results, done.end_turn, done.stop)


async def _look_at_finished(run: Run) -> None:
    """What a pause keeps of calls that are done is judged as if it were stored now, for so it is."""
    finished, run.calls.finished = run.calls.finished, dict(run.calls.passed)
    looked = await gates.last_look_at_results(run, list(finished.values()))
    run.calls.finished = {each["toolUseId"]: each for each in looked}


async def _tell_paused(run: Run) -> None:
    """Tells followers which calls wait."""
    run.errors = {}
    run.check_followers()
    for use, interrupts in run.calls.waiting if run.followed else ():
        await run.emit(ToolPaused(use, interrupts))


async def _through_hooks(run: Run, calls: tuple[ToolCall, ...]) -> ToolsOutcome | None:
    """What the chain came to; None when the run is cancelled before it starts."""
    if run.followed:
        await run.emit(ToolsStarting([call.tool_use for call in calls]))

    if run.cancelled:
        return None

    done = await run.tools_chain(ToolBatch(calls, run.invocation_state))
    if not isinstance(done, ToolsOutcome):
        raise PluginError(
            f"around_tools returned {type(done).__name__}: return what call_next returned, or a ToolsOutcome"
        )

    if run.interrupts or (done.end_turn is None and not run.hooks.plan.intervene):
        return done

    results, end = done.results, checked_closing(done.end_turn)
    if run.hooks.plan.intervene:
        results = await gates.last_look_at_results(run, _results(run, calls, done))
        if end is not None:  # here, where a policy may still ask
            end = (await gates.last_look_at_message(run, {"role": "assistant", "content": end}))["content"]

    return ToolsOutcome(results, end, done.stop)


def _raise_failure(run: Run) -> NoReturn:
    failure, run.batch_failure = run.batch_failure, None
    try:
        raise failure or RuntimeError  # there is one: the caller has looked
    finally:
        failure = None  # or the error's own frame would refer to it


async def execute_batch(run: Run, batch: ToolBatch) -> ToolsOutcome:
    """Hands the calls to the executor: the end of the `around_tools` chain."""
    cancellation = run.cancellation
    run_one = MethodType(run_tool, run)
    # While tools run, a cancel interrupts them, each answering for itself; not the executor that waits for them.
    task = asyncio.current_task()
    parked = cancellation.put_aside(task)
    try:
        results = None
        if run.hooks.plan.execute_tools:
            results = await run.hooks.execute_tools(batch, run_one, run.agent)

        if results is None:
            results = [await run_one(call) for call in batch.calls]
    except Suspend:  # the calls have noted why; hooks around the tools see what there is
        return ToolsOutcome([for_hooks(run, _result(run, call, {})) for call in batch.calls])
    finally:
        cancellation.take_back(task, parked=parked)
        task = None  # a frame that an error keeps should not hold it: see `Cancellation`

    if not isinstance(results, list) or len(results) != len(batch.calls):
        raise PluginError(
            f"execute_tools returned {results!r:.80}: "
            f"return a list with one result per call ({len(batch.calls)}), in their order"
        )

    return ToolsOutcome(results)


async def run_alone(run: Run, call: ToolCall) -> ToolResult:
    """Runs one call that no model asked for.

    Raises:
        BaseException: What a hook raised, or the tool's SystemExit or KeyboardInterrupt.
    """
    run.calls = run.calls.begun(resumed=False)
    results = [await run_tool(run, call)]
    if run.hooks.plan.intervene:
        results = await gates.last_look_at_results(run, results)

    if run.batch_failure is not None:
        _raise_failure(run)

    return results[0]


def _append(run: Run, calls: tuple[ToolCall, ...], done: ToolsOutcome | None) -> list[ToolResult]:
    """Appends one result per use."""
    if done is None and run.hooks.plan.intervene:  # what hooks made of them nobody has looked at
        run.calls.finished = {**run.calls.kept, **run.calls.passed}

    results = _results(run, calls, done)
    blocks: list[ContentBlock] = [{"toolResult": result} for result in results]
    run.history.add_user(blocks, logged=[_logged(run, result) for result in results] if run.journal else None)
    return results


def _logged(run: Run, result: ToolResult) -> dict[str, Any]:
    """What the log keeps of a result in its message: a reference, when its tool's record has the very result."""
    use_id = result["toolUseId"]
    return {"toolResultOf": use_id} if run.calls.logged.get(use_id) == result else {"toolResult": result}


def _results(run: Run, calls: tuple[ToolCall, ...], done: ToolsOutcome | None) -> list[ToolResult]:
    """One result per use: from the chain, else as far as calls had finished, else an error that says so."""
    given: dict[str, Any] = {}
    for result in done.results if done is not None else ():
        if isinstance(result, dict):
            given.setdefault(str(result.get("toolUseId")), result)

    return [_result(run, call, given) for call in calls]


def _result(run: Run, call: ToolCall, given: dict[str, Any]) -> ToolResult:
    use_id = call.tool_use["toolUseId"]
    result = given.get(use_id)
    if result is not None and result is not run.calls.finished.get(use_id):
        return checked_result(result, call.tool_use)

    return run.calls.known(use_id) or error_result(use_id, unfinished(run, use_id))
