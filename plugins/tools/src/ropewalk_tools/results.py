"""Turns what a tool's function returns or raises into a tool result."""

from __future__ import annotations

import json
from typing import Any, Final

import pydantic

from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.tools import error_result
from ropewalk.types import ToolResult, ToolResultContent

_MEDIA: Final = ("image", "document", "video")
_KEYS: Final = ("text", "json", *_MEDIA)
_PRINTED: Final = 2_000  # bits of an integer that Python prints, whatever it is set to
_STATUSES: Final = ("success", "error")
_to_json: Final = json.JSONEncoder(ensure_ascii=False).encode


def result_of(value: Any, tool_use_id: str) -> ToolResult:
    """The result for a returned value.

    Text is taken as it is, a pydantic model becomes a `json` block when it is an object, a dict with a `status` of
    success or error and a list as `content` is a tool result already, everything else becomes a text of strict JSON.

    Raises:
        ValueError: The value looks like a tool result and is none.
    """
    if isinstance(value, str):
        return _success(tool_use_id, {"text": clean_text(value)})

    if type(value) is int and value.bit_length() < _PRINTED:  # not bool; the encoder takes ten times as long
        return _success(tool_use_id, {"text": str(value)})

    if isinstance(value, dict) and value.get("status") in _STATUSES and isinstance(value.get("content"), list):
        content = [_block(block, at) for at, block in enumerate(value["content"])]
        return {"toolUseId": tool_use_id, "status": value["status"], "content": content}

    plain = strict_json(value)
    if isinstance(plain, dict) and isinstance(value, pydantic.BaseModel):
        return _success(tool_use_id, {"json": plain})

    text = plain if isinstance(plain, str) else _to_json(plain)
    return _success(tool_use_id, {"text": text})


def result_of_error(error: BaseException, tool_use_id: str) -> ToolResult:
    """The result for a raised error. A ValueError's text is meant for the model; others get their type in front."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} - "
    return error_result(tool_use_id, f"Error: {kind}{_shown(error)}")


def _success(tool_use_id: str, block: ToolResultContent) -> ToolResult:
    return {"toolUseId": tool_use_id, "status": "success", "content": [block]}


def _block(block: Any, at: int) -> ToolResultContent:
    """A copy of one content block: the tool may return the same object for another call."""
    keys = list(block) if isinstance(block, dict) else []
    if len(keys) != 1 or keys[0] not in _KEYS:
        raise ValueError(
            f"the tool returned a result whose content[{at}] is no content block: a block is a dict with exactly one of"
            f" the keys {', '.join(_KEYS)}"
        )

    key, value = keys[0], block[keys[0]]
    if key == "json":
        return {"json": strict_json(value)}

    if key == "text" and isinstance(value, str):
        return {"text": clean_text(value)}

    if key in _MEDIA and isinstance(value, dict):
        return {key: dict(value)}  # type: ignore[misc]

    raise ValueError(
        f"the tool returned a result whose content[{at}] has a {type(value).__name__} as {key!r}: give it"
        f" {'a str' if key == 'text' else 'a dict'}"
    )


def _shown(error: BaseException) -> str:
    try:
        return clean_text(str(error))
    except Exception:  # noqa: BLE001 - an error whose __str__ raises is an error result all the same
        return "(the error's text cannot be read)"
