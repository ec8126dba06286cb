"""A store that kills its process: before a write, in the middle of it, or after it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from ropewalk import Record
from ropewalk.kits.sessions import Lease, LogInfo, LogKey, LogStore, StoredLog


@dataclass(frozen=True, slots=True)
class Step:
    """One write of an uncrashed run.

    Attributes:
        kinds: The kinds of its records, in order.
        replaces: Whether it replaced the whole log (compaction, erasure).
    """

    kinds: tuple[str, ...]
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class KillPoint:
    """Where a process is killed.

    Attributes:
        step: Index of the write.
        written: How many of its records are stored by then.
        kind: The kind of the record at which it happens, for the report.
        place: `"before"`, `"torn"` (within the write) or `"after"`.
    """

    step: int
    written: int
    kind: str
    place: str

    def __str__(self) -> str:
        return f"write {self.step}, {self.place} {self.kind} ({self.written} records of it written)"


def kill_points(steps: Sequence[Step], *, torn: bool = True) -> list[KillPoint]:
    """Every place to kill a run with these writes: before and after each record.

    Args:
        steps: The writes of an uncrashed run.
        torn: Whether a write can be cut between two of its records.
    """
    points: list[KillPoint] = []
    for number, step in enumerate(steps):
        kinds = step.kinds or ("nothing",)
        points.append(KillPoint(number, 0, kinds[0], "before"))
        if torn and not step.replaces:
            points += [KillPoint(number, n, kinds[n - 1], "torn") for n in range(1, len(kinds))]

        points.append(KillPoint(number, len(step.kinds), kinds[-1], "after"))

    return points


def die() -> NoReturn:
    """Ends the process as a power failure would: nothing is flushed, closed or released."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # never reached


class KillingStore:
    """Hands everything on to a store, and kills the process at one write.

    Attributes:
        steps: The writes so far.
        begun_with: What the first read has found, once there was one.
    """

    def __init__(self, store: LogStore, point: KillPoint | None = None) -> None:
        self._store = store
        self._point = point
        self.steps: list[Step] = []
        self.begun_with: list[Record] | None = None

    def read(self, key: LogKey) -> StoredLog | None:
        """As the store."""
        found = self._store.read(key)
        if self.begun_with is None:
            self.begun_with = list(found.records) if found is not None else []

        return found

    async def lease(self, key: LogKey) -> Lease:
        """As the store."""
        return await self._store.lease(key)

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """As the store, if the process survives."""
        point = self._next(records, replaces=False)
        if point is None:
            return await self._store.append(key, records, position)

        if point.written:
            await self._store.append(key, records[: point.written], position)

        die()

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """As the store, if the process survives."""
        point = self._next(records, replaces=True)
        if point is None:
            return await self._store.replace(key, records, position)

        if point.written:
            await self._store.replace(key, records, position)

        die()

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """As the store."""
        return self._store.logs(session_id)

    def delete(self, session_id: str) -> bool:
        """As the store."""
        return self._store.delete(session_id)

    def _next(self, records: Sequence[Record], *, replaces: bool) -> KillPoint | None:
        number = len(self.steps)
        self.steps.append(Step(tuple(record.kind for record in records), replaces))
        return self._point if self._point is not None and self._point.step == number else None
