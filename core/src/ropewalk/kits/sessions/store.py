"""What a store of logs is. Each session plugin has one; `ropewalk_testing.StoreConformance` tests any."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ropewalk.kits.log.records import Record


@dataclass(frozen=True, slots=True)
class LogKey:
    """Names one log: an agent of a session. Both ids may be any text; a store maps them to names that it can hold."""

    session_id: str
    agent_id: str


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log as it was read.

    Attributes:
        records: The records, in order; the longest good beginning when the log is damaged.
        position: Where the next record goes. Opaque: `append` compares it.
        report: One sentence for each thing that was not as it should be: what was set aside, and where it is now.
    """

    records: list[Record]
    position: int
    report: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogInfo:
    """What a list of sessions shows of one log.

    Attributes:
        key: Which log.
        size: Bytes, as far as the store can tell.
        changed: When it was last written, in seconds since the epoch.
    """

    key: LogKey
    size: int
    changed: float


class Lease(Protocol):
    """The right to write to a log, for the length of a run."""

    def release(self) -> Awaitable[None] | None:
        """Gives it up; what it returns is awaited before the run is over. Giving it up twice is no error."""
        ...


@runtime_checkable
class LogStore(Protocol):
    """Keeps logs. Positions fence: who writes at another position than the log's end gets SessionConflictError.

    `read`, `logs` and `delete` are synchronous, as agents are built without an event loop; the others are called while
    a run waits. A store may be used by many agents, threads and event loops at once. Positions never come twice, also
    not after `replace`. The store's `repr` says where the logs are, without passwords: it stands in messages.
    """

    def read(self, key: LogKey) -> StoredLog | None:
        """The log, or None when there is none. What cannot be read is never lost, and said in the report.

        It is set aside here, or, in a store that changes nothing when it is read, before the next write.

        Raises:
            SessionDamagedError: Not even the beginning can be read.
            SessionException: The store cannot be reached.
        """
        ...

    async def lease(self, key: LogKey) -> Lease:
        """Takes the log for a run. The lease of a process that has died does not count.

        Raises:
            SessionConflictError: Another live writer has it, in this process or another.
        """
        ...

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Adds records whole, at once and durably; those that it has there already are not added again.

        Returns:
            The log's new end.

        Raises:
            SessionConflictError: The log does not end at `position`.
            SessionException: It could not be written; nothing was.
        """
        ...

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Puts records in the place of the whole log (compaction, erasure), readable at every instant; as `append`."""
        ...

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """The logs that there are, of one session or of all, by key."""
        ...

    def delete(self, session_id: str) -> bool:
        """Removes all logs of a session; False when there were none.

        Raises:
            SessionConflictError: A live writer has one of them.
        """
        ...
