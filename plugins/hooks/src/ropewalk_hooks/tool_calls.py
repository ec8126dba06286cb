"""Events around one tool call: another tool, other arguments, another result, once more, or not at all."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.lifecycle import AfterToolCallEvent, BeforeToolCallEvent
from ropewalk.kits.suspension import Suspend
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import ToolCall, error_result
from ropewalk.types import ToolResult, ToolUse
from ropewalk_hooks.errors import HookError

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk_hooks.registry import HookRegistry

TOOL_CANCELLED: Final = "tool cancelled by user"


async def call_tool(
    registry: HookRegistry, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
) -> ToolResult:
    """Runs one call with its events, again as long as a callback asks for it.

    Raises:
        HookError: A callback left something that is no tool use, no tool or no result.
        Exception: What a callback or an inner plugin raised.
        Suspend: A callback, an inner plugin or the tool asks the agent's caller.
    """
    while True:
        result, again = await _attempt(registry, call, call_next, agent)
        if not again or call.cancel_signal.is_set():
            return result


async def _attempt(
    registry: HookRegistry, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
) -> tuple[ToolResult, bool]:
    state, use_id = call.invocation_state, call.tool_use["toolUseId"]
    cancelled: str | None = None
    if registry.has_callbacks(BeforeToolCallEvent):
        ask = partial(call.interrupt, where="before_tool_call")
        before = BeforeToolCallEvent(agent, call.tool, _copied(call.tool_use), state, ask=ask)
        await registry.invoke_callbacks_async(before)
        call = _as_left(before, call, agent)
        if before.cancel_tool:
            cancelled = before.cancel_tool if isinstance(before.cancel_tool, str) else TOOL_CANCELLED

    if not registry.has_callbacks(AfterToolCallEvent):
        return (await call_next(call) if cancelled is None else error_result(use_id, cancelled)), False

    if cancelled is not None:
        return await _after(
            registry,
            AfterToolCallEvent(
                agent, None, call.tool_use, state, error_result(use_id, cancelled), cancel_message=cancelled
            ),
        )

    now = current_seam().monotonic
    began = now()
    try:
        result = await call_next(call)
    except Suspend:  # the call has not ended
        raise
    except BaseException as error:
        failed = error_result(use_id, f"Error: {type(error).__name__} - {error}")
        seconds = now() - began
        event = AfterToolCallEvent(agent, call.tool, call.tool_use, state, failed, exception=error, duration=seconds)
        try:
            await registry.clean_up(event, error)
        finally:
            del event  # or the error's own frame would refer to it

        raise

    seconds = now() - began
    raised: BaseException | None = getattr(call, "error", None)
    return await _after(
        registry, AfterToolCallEvent(agent, call.tool, call.tool_use, state, result, exception=raised, duration=seconds)
    )


async def _after(registry: HookRegistry, event: AfterToolCallEvent) -> tuple[ToolResult, bool]:
    """Shows a copy of the result, and tells what is to become of it."""
    original = event.result
    object.__setattr__(event, "result", copy.deepcopy(original))
    await registry.invoke_callbacks_async(event)
    result: Any = event.result
    if result == original:
        return original, bool(event.retry)

    if not isinstance(result, dict):
        raise HookError(
            f"AfterToolCallEvent.result is {result!r:.80}: write a tool result, such as "
            '{"toolUseId": ..., "status": "success", "content": [{"text": ...}]}'
        )

    return cast("ToolResult", result), bool(event.retry)


def _as_left(event: BeforeToolCallEvent, call: ToolCall, agent: Agent) -> ToolCall:
    """The call that callbacks want; the same object when they want what was there."""
    use, before = _checked_use(event.tool_use, call), call.tool_use
    tool = event.selected_tool
    if tool is call.tool and use["name"] != before["name"]:
        tool = agent.tool_registry.get(use["name"])

    if tool is call.tool and use == before:
        return call

    if tool is not None and not is_tool(tool):
        raise HookError(
            f"BeforeToolCallEvent.selected_tool is {tool!r:.80}, which is no tool: write an object with tool_name, "
            "tool_spec and invoke"
        )

    wanted = call.with_input(use["input"])
    wanted.tool_use, wanted.tool = use, tool
    if use["input"] == before["input"]:
        wanted.input_error = call.input_error

    return wanted


def _checked_use(use: Any, call: ToolCall) -> ToolUse:
    if not isinstance(use, dict) or not isinstance(use.get("name"), str) or not isinstance(use.get("input"), dict):
        raise HookError(
            f"BeforeToolCallEvent.tool_use is {use!r:.80}: write a dict with toolUseId, name and input, a dict"
        )

    use_id = call.tool_use["toolUseId"]
    if use.get("toolUseId") != use_id:
        raise HookError(
            f"BeforeToolCallEvent.tool_use has the id {use.get('toolUseId')!r} in place of {use_id!r}: keep the id, by "
            "which the model knows the call"
        )

    return cast("ToolUse", use)


def _copied(use: ToolUse) -> ToolUse:
    """A copy whose arguments nobody else holds. Direct calls may have arguments that cannot be copied."""
    try:
        return copy.deepcopy(use)
    except Exception:  # noqa: BLE001 - whatever a caller's own object raises
        return {**use, "input": dict(use["input"])}
