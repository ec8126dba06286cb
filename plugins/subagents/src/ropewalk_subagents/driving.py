"""Runs a sub-agent inside a tool call: its events go to the caller's followers, the caller's cancel goes to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from ropewalk import AgentResult

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.tools import ToolCall
    from ropewalk.types import AgentInput

_ATTEMPTS: Final = 8
_PAUSE_SECONDS: Final = 0.1
_under_way: Final[set[asyncio.Task[None]]] = set()
"""The event loop itself refers to tasks weakly."""


async def drive(child: Agent, prompt: AgentInput, call: ToolCall, cancel: Callable[[], None]) -> AgentResult:
    """Runs the child to its end.

    Args:
        child: The agent to run.
        prompt: What it is asked, or the answers with which it goes on.
        call: The tool call that it answers: its invocation state is handed down by reference, and its followers see the
            child's events as `tool_stream` events.
        cancel: Stops the child's run; called several times when the caller is cancelled.

    Raises:
        CancelledError: The caller was cancelled. The child has ended then, and kept what it had said.
        BaseException: What the child raised.
    """
    end: list[AgentResult | BaseException] = []
    # A task of its own: the caller's cancel must not cut the child off, whose history keeps what it had said. It has a
    # copy of the caller's context, through which plugins (budgets, spans) know whose call this is part of.
    task = asyncio.create_task(_follow(child, prompt, call, end))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await _wind_down(task, cancel)
        raise

    if not end:
        raise RuntimeError("the task in which it ran was cancelled")

    answer = end.pop()
    if isinstance(answer, AgentResult):
        return answer

    try:
        raise answer
    finally:
        del answer  # or the error's own frames would refer to it


async def _follow(child: Agent, prompt: AgentInput, call: ToolCall, end: list[AgentResult | BaseException]) -> None:
    """Hands the child's events on. Its end is a value: SystemExit in a task would tear down the event loop."""
    try:
        stream = child.stream_async(prompt, invocation_state=call.invocation_state)
        async with contextlib.aclosing(cast("AsyncGenerator[dict[str, Any], None]", stream)) as events:
            async for event in events:
                if "result" in event:
                    end.append(event["result"])
                else:
                    call.emit(event)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again in the caller's task
        end[:] = [error]
        del end  # nobody takes the error when the caller was cancelled, and its own frame must not refer to it


async def _wind_down(task: asyncio.Task[None], cancel: Callable[[], None]) -> None:
    """Lets the child end as a cancelled run does; cuts it off after a second, or when the caller presses again."""
    try:
        for _ in range(_ATTEMPTS):
            cancel()  # again and again: the run may not have begun at the first time
            await asyncio.wait([task], timeout=_PAUSE_SECONDS)
            if task.done():
                return
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
