"""A store of logs that lives in memory, for tests of agents that have sessions."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Sequence
from typing import Any, final

from ropewalk import Record
from ropewalk.kits.sessions import LogInfo, LogKey, SessionConflictError, SessionDamagedError, StoredLog


class _Log:
    """One log: its lines, and the position of the first of them. Positions never come again."""

    __slots__ = ("base", "changed", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.base = 0
        self.changed = time.time()

    @property
    def end(self) -> int:
        return self.base + len(self.lines)


@final
class MemoryLease:
    """The right to write to a log of a `MemoryLogStore`."""

    def __init__(self, taken: dict[LogKey, object], key: LogKey) -> None:
        self._taken = taken
        self._key = key
        taken[key] = self

    def release(self) -> None:
        """Gives it up."""
        if self._taken.get(self._key) is self:
            del self._taken[self._key]


class MemoryLogStore:
    """Keeps logs as the lines of text that a file would have. It ends with the process.

    Stores made by `reopened()` share the logs, as two processes would share a folder.
    """

    def __init__(self, shared: MemoryLogStore | None = None) -> None:
        """Makes a store.

        Args:
            shared: A store whose logs this one opens too.
        """
        self._logs: dict[LogKey, _Log] = {}
        self._leases: dict[LogKey, object] = {}
        self._lock: Any = threading.RLock()
        if shared is not None:
            vars(self).update(vars(shared))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def reopened(self) -> MemoryLogStore:
        """Another store over the same logs."""
        return type(self)(self)

    def read(self, key: LogKey) -> StoredLog | None:
        """The log, or None.

        Raises:
            SessionDamagedError: A line is no record, or of a newer version.
        """
        with self._lock:
            log = self._logs.get(key)
            if log is None:
                return None

            try:
                return StoredLog([Record.from_dict(json.loads(line)) for line in log.lines], log.end)
            except ValueError as error:
                raise SessionDamagedError(f"session {key.session_id!r}, agent {key.agent_id!r}: {error}") from error

    async def lease(self, key: LogKey) -> MemoryLease:
        """Takes the log for a run.

        Raises:
            SessionConflictError: Somebody has it.
        """
        with self._lock:
            if key in self._leases:
                raise SessionConflictError(
                    f"session {key.session_id!r}, agent {key.agent_id!r} is being written by another agent: "
                    "wait for its run to end"
                )

            return MemoryLease(self._leases, key)

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Adds records at `position`.

        Raises:
            SessionConflictError: The log does not end there.
        """
        lines = [record.to_json() for record in records]
        with self._lock:
            log = self._at(key, position, lines)
            log.lines[position - log.base :] = lines
            log.changed = time.time()

            return log.end

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Puts records in the place of the whole log.

        Raises:
            SessionConflictError: The log does not end at `position`.
        """
        lines = [record.to_json() for record in records]
        with self._lock:
            log = self._at(key, position, None)
            end = log.end + 1  # a writer who knows the log as it was must not fit in by chance
            log.lines, log.base, log.changed = lines, end - len(lines), time.time()
            return end

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """The logs that there are."""
        with self._lock:
            found = [
                LogInfo(key, sum(map(len, log.lines)), log.changed)
                for key, log in self._logs.items()
                if session_id is None or key.session_id == session_id
            ]

        return sorted(found, key=lambda info: (info.key.session_id, info.key.agent_id))

    def delete(self, session_id: str) -> bool:
        """Removes all logs of a session.

        Raises:
            SessionConflictError: Somebody writes to one of them.
        """
        with self._lock:
            gone = [key for key in self._logs if key.session_id == session_id]
            if any(key in self._leases for key in gone):
                raise SessionConflictError(f"session {session_id!r} is being written: wait for the run to end")

            for key in gone:
                del self._logs[key]

            return bool(gone)

    # -- for tests -------------------------------------------------------------------------------------------------

    def lines(self, key: LogKey | None = None) -> list[str]:
        """The lines of one log, or of all: what a file would hold."""
        with self._lock:
            chosen = self._logs.values() if key is None else [self._logs[key]]
            return list(itertools.chain.from_iterable(log.lines for log in chosen))

    def put_line(self, key: LogKey, line: str) -> None:
        """Adds a line as it is, well-formed or not."""
        with self._lock:
            self._logs.setdefault(key, _Log()).lines.append(line)

    def _at(self, key: LogKey, position: int, again: list[str] | None) -> _Log:
        """The log, which ends at `position`, or with the first of the very lines that are to be written there again."""
        log = self._logs.get(key)
        if log is None:
            log = _Log()
            if position == 0:
                self._logs[key] = log

        place = position - log.base
        there = log.lines[place:] if place >= 0 else None
        if log.end == position or (again and there and again[: len(there)] == there):
            return log

        raise SessionConflictError(
            f"session {key.session_id!r}, agent {key.agent_id!r} ends at {log.end}, not at {position}: "
            "another agent has written to it; open it again"
        )
