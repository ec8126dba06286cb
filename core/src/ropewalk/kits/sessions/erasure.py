"""Erasing what a redaction names: the records stay, so that positions and numbers hold, and lose what they said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ropewalk.kits.log.records import Record


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
    return [_without(each, number, uses) if each.path == redaction.path else each for each in earlier]


def _without(record: Record, number: int, uses: set[str]) -> Record:
    data = record.data
    if record.kind in ("message_appended", "message_replaced") and data["id"] == number:
        return _with(record, {**data, "message": _empty(data["message"])})

    if record.kind in ("history_spliced", "snapshot_loaded") and number in data["ids"]:
        messages = [_empty(m) if i == number else m for i, m in zip(data["ids"], data["messages"], strict=True)]
        return _with(record, {**data, "messages": messages})

    if record.kind == "tool_ended" and data["id"] in uses:
        return _with(record, {**data, "result": {**data["result"], "content": []}})

    return record


def _empty(message: Any) -> Any:
    return {**message, "content": []}


def _with(record: Record, data: dict[str, Any]) -> Record:
    return replace(record, data={**data, "erased": True})
