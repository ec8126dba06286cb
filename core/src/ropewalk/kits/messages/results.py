"""From whatever a tool returns or raises to a legal tool result."""

from __future__ import annotations

from typing import Any

from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.tools import error_result
from ropewalk.types import ToolResult, ToolUse


def error_text(error: BaseException) -> str:
    """What the model is told about an exception: `Error: text` for ValueError, with the type's name for others."""
    text = clean_text(_shown(error))
    if type(error) is ValueError:
        return f"Error: {text}"

    return f"Error: {type(error).__name__} - {text}" if text else f"Error: {type(error).__name__}"


def _shown(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception whose __str__ raises is still only an error result
        return ""


def checked_result(result: Any, tool_use: ToolUse) -> ToolResult:
    """The result, strict JSON and under the right id; the tool's own objects are never written to."""
    use_id = tool_use["toolUseId"]
    if not isinstance(result, dict) or not isinstance(result.get("content"), list | tuple):
        return error_result(
            use_id, f"Error: Tool '{tool_use['name']}' did not return a result but {type(result).__name__}"
        )

    content = result["content"]
    status = result.get("status", "success")
    clean = [_clean_piece(piece) for piece in content if isinstance(piece, dict)]
    if status not in ("success", "error") or len(clean) != len(content):
        return error_result(use_id, f"Error: Tool '{tool_use['name']}' returned a malformed result")

    return {"toolUseId": use_id, "status": status, "content": clean}  # type: ignore[typeddict-item]


def _clean_piece(piece: dict[str, Any]) -> dict[str, Any]:
    text = piece.get("text")
    if type(text) is str:
        clean = clean_text(text)
        return {**piece, "text": clean}

    if "text" in piece:
        return {**piece, "text": clean_text(str(text))}

    if "json" in piece:
        return {**piece, "json": strict_json(piece["json"])}

    return {**piece}
