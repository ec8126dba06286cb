"""Sub-agents in the log: where one stands when its call is made, and when its call is made again after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ropewalk import AgentResult, RopewalkError
from ropewalk.kits.messages.rules import tool_uses
from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.tools import error_result
from ropewalk_subagents.answers import tool_result

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.log.fold import LogState
    from ropewalk.tools import ToolCall
    from ropewalk.types import Message, ToolResult

Place: TypeAlias = Literal["anew", "broken_off", "waits"]
"""Where a sub-agent stands: it has done nothing for the call yet, was in the middle of it, or has asked."""

_CELL: Final = "subagents"
_KEY: Final = "call"
_ENDED: Final = "end_turn"


class ChangedError(RopewalkError):
    """An agent that keeps its conversation is not as it was when its process ended."""


def place_of(child: Agent, call: ToolCall, known: LogState | None, *, kept: bool) -> Place | ToolResult:
    """Brings a sub-agent to where the log has it, and tells where that is.

    Args:
        child: The sub-agent, whose turn it is.
        call: The call that it answers.
        known: What the log of the caller has of it when the call is made again after a crash.
        kept: Whether the sub-agent keeps its conversation.

    Returns:
        The place, or the result of the call when the sub-agent had ended.

    Raises:
        ChangedError: The sub-agent keeps its conversation, and is not as it was.
    """
    if _has_own_log(child):
        return _place_in_own_log(child, call)

    if known is not None:
        return _taken_up(child, call, known, kept=kept)

    if child.log is not None:
        child.log.agrees = False  # the caller's log has the conversation so far for each call by itself

    return "anew"


def _ended(child: Agent, call: ToolCall, reason: str, messages: list[Message]) -> Place | ToolResult:
    """The result of a call whose sub-agent had ended, as far as the log tells."""
    use_id, name = call.tool_use["toolUseId"], child.name
    if reason.startswith("error: "):
        return error_result(use_id, f"Error: agent {name!r} failed: {reason.removeprefix('error: ')}")

    if reason == "tool_use" and messages and messages[-1]["role"] == "user":
        return "broken_off"  # structured output, which the log does not have: the model is asked for it again

    nothing: Message = {"role": "assistant", "content": []}
    message = next((each for each in reversed(messages) if each["role"] == "assistant"), nothing)
    return tool_result(AgentResult(reason, message, EventLoopMetrics()), name, use_id)


def mark(child: Agent, call: ToolCall, *, resumed: bool) -> None:
    """Notes in a sub-agent's own log for which call its next run is; without such a log nothing is noted.

    Args:
        child: The sub-agent.
        call: The call.
        resumed: Whether it goes on with answers.
    """
    if _has_own_log(child):
        ids = child.history.ids
        noted = {"id": _named(call), "from": ids[-1] + 1 if ids else 0, "resumed": resumed}
        child.plugin_state(_CELL).set(_KEY, noted)


def _has_own_log(child: Agent) -> bool:
    return bool(child.hooks.plan.write_records)


def _named(call: ToolCall) -> str:
    return f"{call.idempotency_key}:{call.attempt}"


# -- in the caller's log -----------------------------------------------------------------------------------------


def _taken_up(child: Agent, call: ToolCall, known: LogState, *, kept: bool) -> Place | ToolResult:
    own, pause, said = child.suspension, known.pause, list(child.messages)
    waiting = own is not None and (pause is None or own.run != pause.run)
    if kept and (waiting or known.messages[: len(said)] != said):
        answer = _ended(child, call, known.stopped, known.messages) if known.stopped is not None else None
        if isinstance(answer, dict):
            return answer  # it has gone on from there, or not: its answer stands

        raise ChangedError("it was called, or its messages were changed, since; ask it again")

    child.restore(known)
    if known.stopped is not None:
        return _ended(child, call, known.stopped, known.messages)

    return _paused(child, begun=_asked(child) or (pause is not None and pause.cycle >= 0))


def _asked(child: Agent) -> bool:
    """Whether what stands last in the conversation is input without an answer."""
    last = child.messages[-1] if child.messages else None
    return last is not None and last["role"] == "user" and any("toolResult" not in block for block in last["content"])


def _paused(child: Agent, *, begun: bool) -> Place:
    """Where a sub-agent waits or was broken off."""
    pause = child.suspension
    if pause is not None and pause.kind == "interrupt":
        return "waits"

    if pause is None or not begun:  # it had not even stored what it was asked
        child.suspension = None
        return "anew"

    return "broken_off"


# -- in a log of its own -----------------------------------------------------------------------------------------


def _place_in_own_log(child: Agent, call: ToolCall) -> Place | ToolResult:
    noted: dict[str, Any] | None = child.plugin_state(_CELL).get(_KEY)
    if noted is None or noted["id"] != _named(call):
        return "anew"

    ids = child.history.ids
    begun = noted["resumed"] or bool(ids and ids[-1] >= noted["from"])
    if child.suspension is not None:
        return _paused(child, begun=begun)

    if not begun or (call.memo is not None and not noted["resumed"]):
        return "anew"

    last = child.messages[-1] if child.messages else None
    answered = last is not None and last["role"] == "assistant" and not tool_uses(last)
    return _ended(child, call, _ENDED, list(child.messages)) if answered else "broken_off"
