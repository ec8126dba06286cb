"""Sessions in PostgreSQL: connections used in threads; a run's lease is an advisory lock of a connection of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary, finalize

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_sql import schema
from ropewalk_session_sql.failures import first_line, translated
from ropewalk_session_sql.transaction import Transaction

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

T = TypeVar("T")

_KEPT: Final = 5

# Who is silent for half a minute is given up: by the client, whose run would wait for ever, and by the server, which
# keeps the lease of a machine that is gone for as long as it believes in the connection.
_ALIVE: Final[Mapping[str, int]] = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
_CONNECT: Final[Mapping[str, int]] = {"connect_timeout": 10, "tcp_user_timeout": 30_000, **_ALIVE}
_LOCK: Final = "SELECT pg_try_advisory_lock(%s)" + "".join(
    f", set_config('tcp_{name}', '{value}', false)" for name, value in _ALIVE.items()
)


class PostgresDatabase:
    """A PostgreSQL database.

    Args:
        url: Where it is.
    """

    dialect = "postgresql"
    exists = True

    def __init__(self, url: URL) -> None:
        self._url = url
        self.where = f"database {url.render_as_string(hide_password=True)}"
        self._pool = _Pool()
        finalize(self, _Pool.close, self._pool)

    def call(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a transaction.

        Raises:
            SessionException: The database cannot be used.
        """
        with _Translated(self.where), self._engine().connect() as connection:
            done = work(Transaction(connection, self.dialect))
            _commit(connection, self.where)
            return done

    async def write(self, work: Callable[[Transaction], T], digest: str) -> T:
        """Runs `work` in a transaction: on the connection that holds the log's lease, when there is one.

        Raises:
            SessionException: The database cannot be used.
            SessionConflictError: The connection was lost, and somebody else has the lease now.
        """
        lease = self._mine().leases.get(digest)
        return await in_thread(self.call if lease is None else lease.call, work)

    async def lease(self, digest: str, what: str) -> _Lease:
        """Takes the log of a digest for a run.

        Raises:
            SessionConflictError: Somebody else has it.
            SessionException: The database cannot be used.
        """
        lease = _Lease(self, digest, what)
        try:
            await in_thread(lease.take)
        except asyncio.CancelledError:
            lease.give_up()  # the thread may yet take it
            raise

        self._mine().leases[digest] = lease
        return lease

    def is_free(self, transaction: Transaction, digest: str) -> bool:
        """Whether nobody has the log of a digest; if so, nobody gets it before the transaction's end."""
        rows = transaction.rows("SELECT pg_try_advisory_xact_lock(?)", _number(digest))
        return bool(rows[0][0])

    def erase_traces(self) -> None:
        """Nothing: old versions of rows are out of every query's reach, and go with the server's next VACUUM."""

    def close(self) -> None:
        """Closes the connections that no run has; the next use opens others."""
        self._pool.close()

    # -- connections -----------------------------------------------------------------------------------------------

    def connect(self) -> Connection:
        """A connection of the pool."""
        return self._engine().connect()

    def forget(self, lease: _Lease) -> None:
        """Removes a lease that was given up."""
        leases = self._mine().leases
        if leases.get(lease.digest) is lease:
            del leases[lease.digest]

    def _mine(self) -> _Pool:
        if self._pool.process != os.getpid():
            self._pool.abandon()

        return self._pool

    def _engine(self) -> Engine:
        pool = self._mine()
        with pool.guard:
            if pool.engine is None:
                pool.engine = self._made()

            return pool.engine

    def _made(self) -> Engine:
        from sqlalchemy import create_engine

        try:
            engine = create_engine(
                self._url,
                pool_size=_KEPT,
                max_overflow=-1,  # each running agent holds a connection
                pool_pre_ping=True,
                connect_args={name: value for name, value in _CONNECT.items() if name not in self._url.query},
            )
        except ModuleNotFoundError as error:
            raise SessionException(
                f"{self.where} needs psycopg: pip install 'ropewalk-session-sql[postgres]'"
            ) from error

        try:
            with _Translated(self.where), engine.connect() as connection:
                transaction = Transaction(connection, self.dialect)
                if not schema.is_current(transaction, self.where):
                    schema.migrate(transaction, self.where)

                connection.commit()
        except BaseException:
            engine.dispose()
            raise

        return engine


class _Lease:
    """An advisory lock, and the connection that it lives and dies with. The run writes on that very connection.

    Both are gone when nobody has this object any more: an agent was given up in a run.
    """

    __slots__ = ("__weakref__", "_database", "_given_up", "_guard", "_held", "_what", "digest")

    def __init__(self, database: PostgresDatabase, digest: str, what: str) -> None:
        self.digest = digest
        self._database = database
        self._what = what
        self._guard = threading.Lock()
        self._held = _Held()
        self._given_up = False
        finalize(self, _Held.drop, self._held)

    def take(self) -> None:
        """Takes it. Blocks."""
        with self._guard:
            if not self._given_up:
                self._held.connection = self._locked()

    def call(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a transaction. Takes the lease anew first, when its connection was lost."""
        with self._guard:
            connection = self._held.connection
            if connection is None:
                connection = self._held.connection = self._locked()

            try:
                with _Translated(self._database.where):
                    done = work(Transaction(connection, self._database.dialect))
                    _commit(connection, self._database.where)
                    return done
            except BaseException:
                self._recover(connection)
                raise

    async def release(self) -> None:
        """Gives the log up."""
        self._database.forget(self)
        if self._held.process == os.getpid():
            await in_thread(self._release)

    def give_up(self) -> None:
        """Gives it up without waiting, whether it was taken or not."""
        threading.Thread(target=self._release, name="ropewalk-lease", daemon=True).start()

    def _release(self) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        with self._guard:
            self._given_up = True
            connection, self._held.connection = self._held.connection, None
            if connection is None:
                return

            try:
                connection.exec_driver_sql("SELECT pg_advisory_unlock(%s)", (_number(self.digest),))
                connection.commit()
                connection.close()
            except SQLAlchemyError:  # the connection was lost, and the lock with it
                _discard(connection)

    def _locked(self) -> Connection:
        with _Translated(self._database.where):
            connection = self._database.connect()
            try:
                taken = bool(connection.exec_driver_sql(_LOCK, (_number(self.digest),)).scalar_one())
                connection.commit()
            except BaseException:
                _discard(connection)
                raise

        if not taken:
            connection.close()
            raise SessionConflictError(
                f"{self._what} is in use by another run, in {self._database.where}: wait for its end, or use another "
                "session_id"
            )

        return connection

    def _recover(self, connection: Connection) -> None:
        """Rolls back; a connection that cannot even do that has lost the lock."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            if connection.invalidated:
                raise SQLAlchemyError  # noqa: TRY301 - one way out for both

            connection.rollback()
        except SQLAlchemyError:
            self._held.connection = None
            _discard(connection)


class _Held:
    """The connection of a lease, and whose it is."""

    __slots__ = ("connection", "process")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.process = os.getpid()

    def drop(self) -> None:
        """Closes it, without asking the server."""
        connection, self.connection = self.connection, None
        if connection is not None and self.process == os.getpid():
            _discard(connection)
        elif connection is not None:
            _abandoned.append(connection)


class _Pool:
    """The engine and the leases of one process."""

    __slots__ = ("engine", "guard", "leases", "process")

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.process = os.getpid()
        self.engine: Engine | None = None
        self.leases: WeakValueDictionary[str, _Lease] = WeakValueDictionary()

    def close(self) -> None:
        """Closes idle connections, if they are this process's."""
        if self.process == os.getpid():
            engine, self.engine = self.engine, None
            if engine is not None:
                engine.dispose()

    def abandon(self) -> None:
        """After a fork: the connections are the parent's."""
        _abandoned.append((self.engine, self.leases))
        self.guard = threading.RLock()
        self.process = os.getpid()
        self.engine, self.leases = None, WeakValueDictionary()


_abandoned: Final[list[Any]] = []


class _Translated:
    """Turns a database's errors into those of sessions."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        if isinstance(error, SQLAlchemyError):
            raise translated(error, self._where) from error


def _commit(connection: Connection, where: str) -> None:
    from sqlalchemy.exc import DBAPIError

    try:
        connection.commit()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise

        raise SessionException(
            f"{where}: the connection ended in a commit, which is stored or not ({first_line(error)}): call the agent "
            "again, which finds out"
        ) from error


def _discard(connection: Connection) -> None:
    connection.invalidate()
    connection.close()


def _number(digest: str) -> int:
    """The advisory lock of a log: 64 bits with a sign."""
    return int.from_bytes(bytes.fromhex(digest[:16]), signed=True)
