"""What a caller's model is told of the end of a sub-agent's run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ropewalk.kits.json_values import strict_json
from ropewalk.tools import error_result

if TYPE_CHECKING:
    from ropewalk import AgentResult
    from ropewalk.types import ToolResult

_UNFINISHED: Final = frozenset({"cancelled", "checkpoint", "interrupt"})


def tool_result(result: AgentResult, name: str, tool_use_id: str) -> ToolResult:
    """The result of a tool call that an agent answered.

    Structured output is a `json` block, anything else the answer's text. An end before the answer (a limit, a cancel)
    is an error that says so, with what was said until then.
    """
    if result.structured_output is not None:
        return {
            "toolUseId": tool_use_id,
            "status": "success",
            "content": [{"json": strict_json(result.structured_output)}],
        }

    text = str(result).strip()
    reason = result.stop_reason
    if reason in _UNFINISHED or reason.startswith("limit_"):
        said = f"; it had said: {text}" if text and reason != "cancelled" else ""
        return error_result(tool_use_id, f"Agent {name!r} ended before it had an answer ({reason}){said}")

    shown = text or f"(agent {name!r} gave an empty answer)"
    return {"toolUseId": tool_use_id, "status": "success", "content": [{"text": shown}]}
