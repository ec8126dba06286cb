"""The log of a run: what changes an agent's state is one record, handed to `write_records` before the run goes on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

SCHEMA_VERSION: Final = 1

Kind: TypeAlias = Literal[
    "run_started",
    "message_appended",
    "message_replaced",
    "history_spliced",
    "model_started",
    "model_ended",
    "tool_started",
    "tool_ended",
    "state_changed",
    "once",
    "run_suspended",
    "run_resumed",
    "run_ended",
]


@dataclass(frozen=True, slots=True)
class Record:
    """One change.

    Attributes:
        run: Id of the run it belongs to.
        number: Counts from 0 within the run; run and number name the record.
        kind: What changed.
        data: The change, JSON only.
        version: Version of the shape of `data`.
    """

    run: str
    number: int
    kind: Kind
    data: dict[str, Any]
    version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {"run": self.run, "n": self.number, "kind": self.kind, "v": self.version, "data": self.data}


class Journal:
    """Collects a run's records between two commits.

    Attributes:
        run: The run's id.
        writing: Held while records are written.
    """

    __slots__ = ("_number", "_pending", "run", "writing")

    def __init__(self, run: str, number: int = 0) -> None:
        self.run = run
        self.writing = asyncio.Lock()
        self._number = number
        self._pending: list[Record] = []

    def add(self, kind: Kind, data: dict[str, Any]) -> None:
        """Notes one change."""
        self._pending.append(Record(self.run, self._number, kind, data))
        self._number += 1

    @property
    def number(self) -> int:
        """How many records the run has noted."""
        return self._number

    def take(self) -> list[Record]:
        """Everything noted since the last call."""
        taken, self._pending = self._pending, []
        return taken
