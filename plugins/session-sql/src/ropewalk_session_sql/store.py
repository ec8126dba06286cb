"""The store: one row a log, one row a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import (
    Lease,
    LogInfo,
    LogKey,
    SessionConflictError,
    SessionDamagedError,
    SessionException,
    StoredLog,
)
from ropewalk.kits.sessions.texts import records_of
from ropewalk_session_sql.rows import (
    digest_of,
    digest_of_key,
    id_of,
    id_text,
    new_id,
    parts_of,
    position_of,
)
from ropewalk_session_sql.transaction import Transaction
from ropewalk_session_sql.urls import parsed

T = TypeVar("T")

_CREATE: Final = (
    "INSERT INTO ropewalk_logs (id, digest, session_digest, session_id, agent_id, first, next, bytes, changed) "
    "VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (digest) DO NOTHING"
)
_MOVE_ON: Final = (
    "UPDATE ropewalk_logs SET next = ?, bytes = bytes + ?, changed = ? WHERE id = ? AND next = ? AND digest = ?"
)
_RENEW: Final = (
    "UPDATE ropewalk_logs SET first = ?, next = ?, bytes = ?, changed = ? WHERE id = ? AND next = ? AND digest = ?"
)
_WRITE: Final = "INSERT INTO ropewalk_records (log, seq, record) VALUES (?, ?, ?)"
_CLEAR: Final = "DELETE FROM ropewalk_records WHERE log = ?"
# One statement, so that the row of the log and those of its records are of one moment.
_READ: Final = (
    "SELECT l.id, l.next, r.seq, r.record, l.first FROM ropewalk_logs l LEFT JOIN ropewalk_records r ON r.log = l.id "
    "WHERE l.digest = ? ORDER BY r.seq"
)
_READ_FROM: Final = (
    "SELECT l.id, l.next, r.seq, r.record, l.first FROM ropewalk_logs l LEFT JOIN ropewalk_records r "
    "ON r.log = l.id AND r.seq >= ? WHERE l.digest = ? ORDER BY r.seq"
)
_LIST: Final = "SELECT session_id, agent_id, bytes, changed FROM ropewalk_logs"
_OF_SESSION: Final = "SELECT id, digest FROM ropewalk_logs WHERE session_digest = ?"
_DELETE: Final = "DELETE FROM ropewalk_logs WHERE id = ?"


class _Database(Protocol):
    """What the store needs of a database."""

    where: str

    @property
    def exists(self) -> bool: ...

    def call(self, work: Callable[[Transaction], T]) -> T: ...

    async def write(self, work: Callable[[Transaction], T], digest: str) -> T: ...

    async def lease(self, digest: str, what: str) -> Lease: ...

    def is_free(self, transaction: Transaction, digest: str) -> bool: ...

    def erase_traces(self) -> None: ...

    def close(self) -> None: ...


class SQLLogStore:
    """Keeps logs in a database. Connects at the first use; made by one process, it works in forked children too.

    Args:
        url: `sqlite:///path/to/file` or `postgresql://user:password@host/database`; a SQLite file in the home folder
            when None.
        durability: For SQLite: whether what was written survives the process, or a power cut too. PostgreSQL decides
            that itself (`synchronous_commit`).

    Raises:
        SessionException: The URL cannot be used.
    """

    def __init__(self, url: str | None = None, durability: Literal["process", "power"] = "process") -> None:
        if durability not in ("process", "power"):
            raise SessionException(f'durability={durability!r}: give "process" or "power"')

        self._database = _database(url, durability)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.where!r})"

    def read(self, key: LogKey) -> StoredLog | None:
        """The log, or None when there is none.

        Raises:
            SessionDamagedError: Rows are missing, or hold no records.
            SessionException: The database cannot be reached, or a record is a newer version's.
        """
        if not self._database.exists:
            return None

        rows = self._database.call(lambda transaction: transaction.rows(_READ, digest_of_key(key)))
        if not rows:
            return None

        log, following = rows[0][0], rows[0][1]
        found = [row for row in rows if row[2] is not None]
        if [row[2] for row in found] != list(range(rows[0][4], following)):
            raise SessionDamagedError(
                f"{self._named(key)}: rows of its records are missing; restore the database from a backup"
            )

        return StoredLog(records_of([row[3] for row in found], self._named(key)), position_of(log, following))

    async def lease(self, key: LogKey) -> Lease:
        """Takes the log for a run.

        Raises:
            SessionConflictError: Another live writer has it.
            SessionException: The database cannot be reached.
        """
        return await self._database.lease(digest_of_key(key), self._named(key))

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Adds records in one transaction. Those that are there already, from `position` on, are not added again.

        Raises:
            SessionConflictError: The log does not end at `position`.
            SessionException: The database cannot be reached or written.
        """
        if not records:
            return position

        texts = [record.to_json() for record in records]
        digest = digest_of_key(key)
        return await self._database.write(partial(self._append, key, digest, texts, position), digest)

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Puts records in the place of all that the log has, in one transaction.

        Raises:
            SessionConflictError: The log does not end at `position`.
            SessionException: The database cannot be reached or written.
        """
        texts = [record.to_json() for record in records]
        digest = digest_of_key(key)
        end = await self._database.write(partial(self._replace, key, digest, texts, position), digest)
        await in_thread(self._database.erase_traces)  # which waits for readers
        return end

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """The logs that there are, of one session or of all, by key."""
        if not self._database.exists:
            return []

        if session_id is None:
            rows = self._database.call(lambda transaction: transaction.rows(_LIST))
        else:
            one, digest = f"{_LIST} WHERE session_digest = ?", digest_of(session_id)
            rows = self._database.call(lambda transaction: transaction.rows(one, digest))

        infos = [LogInfo(LogKey(id_of(row[0]), id_of(row[1])), int(row[2]), float(row[3])) for row in rows]
        return sorted(infos, key=lambda info: (info.key.session_id, info.key.agent_id))

    def delete(self, session_id: str) -> bool:
        """Removes all logs of a session; False when there were none.

        Raises:
            SessionConflictError: A live writer has one of them.
        """
        if not self._database.exists:
            return False

        deleted = self._database.call(partial(self._delete, session_id))
        if deleted:
            self._database.erase_traces()

        return deleted

    def close(self) -> None:
        """Closes the connections; the next use opens others."""
        self._database.close()

    # -- inside a transaction --------------------------------------------------------------------------------------

    def _append(self, key: LogKey, digest: str, texts: list[str], position: int, transaction: Transaction) -> int:
        size, now = sum(map(len, texts)), current_seam().time()
        log, start = parts_of(position)
        if position == 0:
            log = new_id()
            ids = (digest_of(key.session_id), id_text(key.session_id), id_text(key.agent_id))
            moved = transaction.execute(_CREATE, log, digest, *ids, len(texts), size, now)
        else:
            moved = transaction.execute(_MOVE_ON, start + len(texts), size, now, log, start, digest)

        if not moved:
            return self._append_rest(key, digest, texts, position, transaction)

        transaction.many(_WRITE, [(log, number, text) for number, text in enumerate(texts, start)])
        return position_of(log, start + len(texts))

    def _append_rest(self, key: LogKey, digest: str, texts: list[str], position: int, transaction: Transaction) -> int:
        """Whether the log ends elsewhere because these records, or the first of them, were stored before."""
        log, start = parts_of(position)
        rows = transaction.rows(_READ_FROM, start, digest)
        there = [row[3] for row in rows if row[3] is not None]
        same_log = bool(rows) and (position == 0 or rows[0][0] == log)
        if not there or not same_log or there != texts[: len(there)] or rows[0][1] != start + len(there):
            raise self._conflict(key)

        end = position_of(rows[0][0], rows[0][1])
        rest = texts[len(there) :]
        return self._append(key, digest, rest, end, transaction) if rest else end

    def _replace(self, key: LogKey, digest: str, texts: list[str], position: int, transaction: Transaction) -> int:
        if position == 0:
            return self._append(key, digest, texts, position, transaction)

        log, start = parts_of(position)
        end = start + len(texts)  # numbers go on: who believes in an old end never finds it again
        size, now = sum(map(len, texts)), current_seam().time()
        if not transaction.execute(_RENEW, start, end, size, now, log, start, digest):
            rows = transaction.rows(_READ, digest)
            if not rows or rows[0][:2] != (log, end) or [row[3] for row in rows] != texts:
                raise self._conflict(key)

            return position_of(log, end)

        transaction.execute(_CLEAR, log)
        transaction.many(_WRITE, [(log, number, text) for number, text in enumerate(texts, start)])
        return position_of(log, end)

    def _delete(self, session_id: str, transaction: Transaction) -> bool:
        logs = transaction.rows(_OF_SESSION, digest_of(session_id))
        for log, digest in logs:
            if not self._database.is_free(transaction, digest):
                raise SessionConflictError(
                    f"session {session_id!r} is in use by a run, in {self._database.where}: delete it after its end"
                )

            transaction.execute(_CLEAR, log)
            transaction.execute(_DELETE, log)

        return bool(logs)

    def _named(self, key: LogKey) -> str:
        return f"session {key.session_id!r}, agent {key.agent_id!r}"

    def _conflict(self, key: LogKey) -> SessionConflictError:
        return SessionConflictError(
            f"{self._named(key)} was written or deleted by somebody else since it was read, in {self._database.where}: "
            "build the agent again, which reads it, and repeat the call"
        )


def _database(url: str | None, durability: Any) -> _Database:
    from ropewalk_session_sql.postgres import PostgresDatabase
    from ropewalk_session_sql.sqlite import SQLiteDatabase

    found = parsed(url)
    return SQLiteDatabase(found, durability) if found.drivername == "sqlite" else PostgresDatabase(found)
