"""What a model is told about an answer that does not fit."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

MOST_FIELDS: Final = 20
LONGEST_VALUE: Final = 60
LONGEST_MESSAGE: Final = 300


def problem_text(name: str, error: ValidationError) -> str:
    """One line per field. Of what was sent only short plain values are shown, never a whole object."""
    fields: dict[str, list[str]] = {}
    for each in error.errors(include_url=False, include_context=False):
        messages = fields.setdefault(".".join(map(str, each["loc"])), [])
        message = _message(each)
        if message not in messages:
            messages.append(message)

    lines = [_line(field, messages) for field, messages in list(fields.items())[:MOST_FIELDS]]
    more = len(fields) - MOST_FIELDS
    if more > 0:
        lines.append(f"- and {more} more")

    return "\n".join([f"Validation failed for {name}. Please fix the following errors:", *lines])


def _line(field: str, messages: list[str]) -> str:
    where = f"Field '{field}'" if field else "The object"
    return f"- {where}: {'; '.join(messages)}"


def _message(detail: ErrorDetails) -> str:
    message = _short(" ".join(detail["msg"].split()), LONGEST_MESSAGE)
    value: Any = detail.get("input")
    if detail["type"] in ("missing", "json_invalid") or isinstance(value, dict | list):
        return message

    return f"{message} (got {_short(json.dumps(value, ensure_ascii=False, default=str), LONGEST_VALUE)})"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
