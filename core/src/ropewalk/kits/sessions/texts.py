"""Records out of the texts that a store has kept, and what to say of those that are none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ropewalk.kits.log.records import SCHEMA_VERSION, Record
from ropewalk.kits.sessions.errors import SessionDamagedError, SessionException


def records_of(texts: Sequence[str], what: str) -> list[Record]:
    """The records of texts that `Record.to_json` has written.

    Args:
        texts: One JSON object each, in order.
        what: Names the log in errors.

    Raises:
        SessionDamagedError: A text is no record.
        SessionException: A record is a newer version's.
    """
    try:
        values: list[Any] = json.loads(f"[{','.join(texts)}]")
        if len(values) == len(texts):
            return [Record.from_dict(value) for value in values]
    except ValueError:
        pass

    return [_record(text, f"{what}: record {number}") for number, text in enumerate(texts)]


def _record(text: str, what: str) -> Record:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SessionDamagedError(f"{what} is no JSON ({error}): restore the session from a backup") from error

    try:
        return Record.from_dict(value)
    except ValueError as error:
        if isinstance(value, dict) and type(value.get("v")) is int and value["v"] > SCHEMA_VERSION:
            raise SessionException(f"{what}: {error}") from error

        raise SessionDamagedError(f"{what}: {error}; restore the session from a backup") from error
