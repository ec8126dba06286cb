"""Erasing what a redaction names: the records stay, so that positions and numbers hold, and lose what they said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ropewalk.kits.log.records import Record
from ropewalk.kits.suspension import Suspension
from ropewalk.types import ToolResult

_ERASED: Final = "[erased]"


def redactions(records: Sequence[Record]) -> list[Record]:
    """The redactions among records."""
    return [record for record in records if record.kind == "redacted"]


def erased(earlier: Sequence[Record], redaction: Record) -> list[Record]:
    """Records without what they said of the message that a redaction names.

    Args:
        earlier: The records before it, in order.
        redaction: A record of kind `redacted`.
    """
    number, uses = redaction.data["id"], set(redaction.data["uses"])
    return [
        _without_pause(_without(each, number, uses), redaction.run, uses) if each.path == redaction.path else each
        for each in earlier
    ]


def _without(record: Record, number: int, uses: set[str]) -> Record:
    data = record.data
    if record.kind in ("message_appended", "message_replaced") and data["id"] == number:
        return _with(record, {**data, "message": _empty(data["message"])})

    if record.kind in ("history_spliced", "snapshot_loaded") and number in data["ids"]:
        messages = [_empty(m) if i == number else m for i, m in zip(data["ids"], data["messages"], strict=True)]
        return _with(record, {**data, "messages": messages})

    if record.kind == "tool_ended" and data["id"] in uses:
        return _with(record, {**data, "result": _silent(data["result"])})

    return record


def _without_pause(record: Record, run: str, uses: set[str]) -> Record:
    """The pauses of the run that redacts hold its input, and results that were not in the history yet."""
    data = record.data
    if record.kind == "run_suspended" and data.get("run") == run:
        return replace(record, data=_pause(data, uses))

    if record.kind == "snapshot_loaded" and (data.get("pause") or {}).get("run") == run:
        return _with(record, {**data, "pause": _pause(data["pause"], uses)})

    return record


def _pause(data: dict[str, Any], uses: set[str]) -> dict[str, Any]:
    pause = Suspension.from_dict(data)
    finished = {use: _silent(result) if use in uses else result for use, result in pause.finished.items()}
    effects = {
        use: [replace(each, result=_silent(each.result)) for each in kept] if use in uses else kept
        for use, kept in pause.effects.items()
    }
    return replace(pause, input=[], finished=finished, effects=effects).to_dict()


def _silent(result: ToolResult) -> ToolResult:
    return {**result, "content": [{"text": _ERASED}]}


def _empty(message: Any) -> Any:
    """The message with nothing said in it, and every result still the result of its use."""
    kept = [
        {"toolResult": _silent(block["toolResult"])} if "toolResult" in block else block
        for block in message["content"]
        if "toolResult" in block or "toolResultOf" in block
    ]
    return {**message, "content": kept or [{"text": _ERASED}]}


def _with(record: Record, data: dict[str, Any]) -> Record:
    return replace(record, data={**data, "erased": True})
