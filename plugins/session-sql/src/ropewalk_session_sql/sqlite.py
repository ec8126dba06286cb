"""Sessions in a SQLite file: one connection per process, used where the caller is, in well under a millisecond."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import finalize

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_sql import locks, schema
from ropewalk_session_sql.failures import is_busy, translated
from ropewalk_session_sql.transaction import Transaction
from ropewalk_session_sql.urls import file_of

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

T = TypeVar("T")

logger = logging.getLogger("ropewalk.sessions")

_PAUSES: Final = (0.001, 0.002, 0.005, *[0.01] * 20, *[0.05] * 200)
"""Seconds to wait while another process writes; ten seconds in all."""


class SQLiteDatabase:
    """A SQLite database.

    Args:
        url: Where it is.
        durability: `"process"`: what was written survives the process. `"power"`: it survives a power cut too.
    """

    dialect = "sqlite"

    def __init__(self, url: URL, durability: Literal["process", "power"]) -> None:
        self._path = file_of(url)
        self._url = url if self._path is None else url.set(database=str(self._path))  # whatever folder we are in later
        self._power = durability == "power" and self._path is not None
        self.where = f"SQLite database {self._path or 'in memory'}"
        self._lock_name = f"{self._path.resolve()}-leases" if self._path else f"memory-{id(self)}"
        self._open = _Open()
        finalize(self, _Open.close, self._open)

    @property
    def exists(self) -> bool:
        """Whether there is a database already."""
        return self._path is None or self._path.exists()

    def call(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a transaction, and waits while another process writes.

        Raises:
            SessionException: The database cannot be used.
        """
        for pause in _PAUSES:
            try:
                return self._once(work)
            except _BusyError:
                time.sleep(pause)

        raise self._still_busy()

    async def write(self, work: Callable[[Transaction], T], digest: str) -> T:  # noqa: ARG002 - one connection for all
        """Runs `work` in a transaction, as `call`."""
        for pause in _PAUSES:
            try:
                return await in_thread(self._once, work) if self._power else self._once(work)
            except _BusyError:
                await asyncio.sleep(pause)

        raise self._still_busy()

    async def lease(self, digest: str, what: str) -> _Lease:
        """Takes the log of a digest for a run.

        Raises:
            SessionConflictError: Somebody else has it.
        """
        number = _number(digest)
        if self._path is not None:
            self._make_folder(self._path)

        try:
            taken = locks.take(self._lock_name, number, shared_file=self._path is not None)
        except OSError as error:
            raise SessionException(
                f"{self._lock_name} cannot be locked ({error.strerror}): {what} is not in use"
            ) from error

        if not taken:
            raise SessionConflictError(
                f"{what} is in use by another run, in {self.where}: wait for its end, or use another session_id"
            )

        return _Lease(self._lock_name, number)

    def is_free(self, transaction: Transaction, digest: str) -> bool:  # noqa: ARG002 - as for the other database
        """Whether nobody has the log of a digest."""
        number = _number(digest)
        if not locks.take(self._lock_name, number, shared_file=self._path is not None):
            return False

        locks.free(self._lock_name, number)
        return True

    def erase_traces(self) -> None:
        """Sees that what was overwritten is in no file any more: not in the write-ahead log either. Blocks."""
        from sqlalchemy.exc import SQLAlchemyError

        for pause in _PAUSES[:40]:
            with self._open.guard:
                connection = self._open.connection
                if connection is None:
                    return

                try:
                    if not _pragma(connection, "wal_checkpoint(TRUNCATE)")[0]:
                        return
                except SQLAlchemyError as error:  # what was to be written is: this must not seem to have failed
                    logger.warning("%s: what was erased is still in the write-ahead log: %s", self.where, error)
                    return

            time.sleep(pause)

        logger.warning(
            "%s: another process reads, so that what was erased is still in the write-ahead log until the next "
            "checkpoint",
            self.where,
        )

    def close(self) -> None:
        """Closes the connection; the next use opens another one."""
        self._open.close()

    # -- one transaction -------------------------------------------------------------------------------------------

    def _once(self, work: Callable[[Transaction], T]) -> T:
        from sqlalchemy.exc import SQLAlchemyError

        opened = self._open
        if opened.process != os.getpid():
            opened.abandon()

        with opened.guard:
            try:
                connection = self._connected(opened)
                try:
                    done = work(Transaction(connection, self.dialect))
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
            except SQLAlchemyError as error:
                if is_busy(error):
                    raise _BusyError from error

                opened.close()
                raise translated(error, self.where) from error

        return done

    def _connected(self, opened: _Open) -> Connection:
        if opened.connection is not None:
            self._check_file(opened)
            return opened.connection

        from sqlalchemy import create_engine
        from sqlalchemy.pool import StaticPool

        if self._path is not None:
            self._make_file(self._path)

        # timeout=0: the loop must not stand still while another process writes; `write` and `call` wait themselves
        arguments = {"timeout": 0, "check_same_thread": False}
        engine = create_engine(self._url, poolclass=StaticPool, connect_args=arguments)
        connection = engine.connect()
        try:
            _pragma(connection, "journal_mode=WAL")
            _pragma(connection, f"synchronous={'FULL' if self._power else 'NORMAL'}")
            _pragma(connection, "secure_delete=ON")
            self._prepare(connection)
        except BaseException:
            connection.close()
            engine.dispose()
            raise

        opened.engine, opened.connection = engine, connection
        opened.inode = self._path.stat().st_ino if self._path is not None else 0
        return connection

    def _prepare(self, connection: Connection) -> None:
        transaction = Transaction(connection, self.dialect)
        if not schema.is_current(transaction, self.where):
            connection.rollback()
            try:
                schema.migrate(transaction, self.where)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

        connection.rollback()

    def _check_file(self, opened: _Open) -> None:
        """SQLite would go on writing to a file that was deleted, and nobody would ever find it."""
        if self._path is None:
            return

        try:
            inode = os.stat(self._path).st_ino  # noqa: PTH116 - on the way of each commit
        except OSError:
            inode = -1

        if inode != opened.inode:
            opened.close()
            raise SessionException(
                f"{self.where} was removed or replaced while it was in use: put it back, or begin a new session"
            )

    def _make_folder(self, path: Path) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SessionException(
                f"the folder of {self.where} cannot be made ({error.strerror}): give a url in a folder that can be "
                "written"
            ) from error

    def _make_file(self, path: Path) -> None:
        self._make_folder(path)
        try:
            # Only a file that was not there: closing any handle of a file drops the locks that this process's other
            # connections have on it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise SessionException(
                f"{self.where} cannot be opened ({error.strerror}): give a url of a file that can be written"
            ) from error

    def _still_busy(self) -> SessionException:
        return SessionException(
            f"{self.where} was locked by other processes for ten seconds: use PostgreSQL for many writers, or one file "
            "for each group of sessions"
        )


class _BusyError(Exception):
    """Another process is writing."""


class _Lease:
    """A log that was taken. It is free again when nobody has this object any more: an agent was given up in a run."""

    __slots__ = ("__weakref__", "_free")

    def __init__(self, name: str, number: int) -> None:
        self._free = finalize(self, _free, name, number, os.getpid())

    async def release(self) -> None:
        """Gives the log up."""
        self._free()


def _free(name: str, number: int, process: int) -> None:
    if process == os.getpid():
        locks.free(name, number)


class _Open:
    """The connection of one process."""

    __slots__ = ("connection", "engine", "guard", "inode", "process")

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.process = os.getpid()
        self.engine: Engine | None = None
        self.connection: Connection | None = None
        self.inode = 0

    def close(self) -> None:
        """Closes it, if it is this process's."""
        if self.process != os.getpid():
            self.abandon()
            return

        with self.guard:
            connection, engine, self.connection, self.engine = self.connection, self.engine, None, None
            if connection is not None:
                connection.close()

            if engine is not None:
                engine.dispose()

    def abandon(self) -> None:
        """After a fork: the connection is the parent's. It must not be used here, and not be closed either."""
        _abandoned.append((self.connection, self.engine))
        self.guard = threading.RLock()
        self.process = os.getpid()
        self.connection = self.engine = None


_abandoned: Final[list[Any]] = []


def _number(digest: str) -> int:
    """The place of a log in the lock file: 61 bits, for the offsets of files have a sign."""
    return int(digest[:16], 16) >> 3


def _pragma(connection: Connection, words: str) -> Any:
    """Sets something about a connection, outside of transactions, where some of it would have no effect."""
    result = connection.exec_driver_sql(f"PRAGMA {words}")
    found = result.fetchone() if result.returns_rows else None
    connection.rollback()
    return found
