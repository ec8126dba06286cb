"""What becomes of a tool call that had started when its process ended, and was never seen to end."""

from __future__ import annotations

from typing import Any, Final

from ropewalk.errors import ToolOutcomeUnknownError
from ropewalk.kits.json_values import strict_json
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN
from ropewalk.tools import ToolCall, error_result, on_unknown_of
from ropewalk.types import ToolResult

_QUESTION: Final = (
    "The process ended while this tool ran; it may or may not have taken effect. Answer true to run it again, "
    '{"result": VALUE} to say what it came to, or anything else to tell the model that the outcome is unknown.'
)


def after_crash(call: ToolCall) -> ToolResult | None:
    """The result that stands for the call, as its tool's `on_unknown` says; None when the tool runs again.

    Raises:
        Suspend: The caller of the agent is asked.
        ToolOutcomeUnknownError: The tool wants the run to fail.
    """
    tool, use = call.tool, call.tool_use
    wanted = on_unknown_of(tool) if tool is not None else "error_result"
    if wanted in ("rerun", "resume"):
        return None

    if wanted == "fail":
        raise ToolOutcomeUnknownError(
            f"tool {use['name']!r} was running when the process ended, call {use['toolUseId']!r}: find out whether it "
            "took effect, then call the agent with a new prompt"
        )

    if wanted == "ask":
        asked = {"tool": use["name"], "input": strict_json(use["input"]), "question": _QUESTION}
        answer: Any = call.interrupt("outcome_unknown", asked, where="on_unknown")
        if answer is True:
            return None

        if isinstance(answer, dict) and set(answer) == {"result"}:
            value = answer["result"]
            content: Any = {"text": value} if isinstance(value, str) else {"json": value}
            return {"toolUseId": use["toolUseId"], "status": "success", "content": [content]}

    return error_result(use["toolUseId"], OUTCOME_UNKNOWN)
