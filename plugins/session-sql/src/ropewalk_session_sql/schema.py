"""The tables, and the steps that bring an older database up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ropewalk.kits.sessions import SessionException

if TYPE_CHECKING:
    from ropewalk_session_sql.transaction import Transaction

STEPS: Final[Sequence[Sequence[str]]] = (
    (
        # Records are numbered from `first` to before `next`. Who moves `next` on from where he believes it to be has
        # the right to write there. `id` is random: a log that was deleted and begun again is another one.
        """CREATE TABLE ropewalk_logs (
            id {bigint} NOT NULL PRIMARY KEY,
            digest TEXT NOT NULL UNIQUE,
            session_digest TEXT NOT NULL,
            session_id TEXT NOT NULL,
            agent_id TEXT NOT NULL,
            first {bigint} NOT NULL,
            next {bigint} NOT NULL,
            bytes {bigint} NOT NULL,
            changed DOUBLE PRECISION NOT NULL
        )""",
        "CREATE INDEX ropewalk_logs_of_session ON ropewalk_logs (session_digest)",
        """CREATE TABLE ropewalk_records (
            log {bigint} NOT NULL,
            seq {bigint} NOT NULL,
            record TEXT NOT NULL,
            PRIMARY KEY (log, seq)
        ) {clustered}""",
    ),
)
"""Statements that lead from each version to the next one. What was released stays as it is; new steps are added."""

_DIALECTS: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {"bigint": "INTEGER", "clustered": "WITHOUT ROWID"},
    "postgresql": {"bigint": "BIGINT", "clustered": ""},
}
_EXISTS: Final[Mapping[str, str]] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ropewalk_schema'",
    # not to_regclass, which may still believe what it found before the lock was waited for
    "postgresql": "SELECT 1 FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) "
    "AND tablename = 'ropewalk_schema'",
}
_LOCK: Final[Mapping[str, str]] = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(7310592748362915)",
}


def is_current(transaction: Transaction, where: str) -> bool:
    """Whether the database has the tables as they are now.

    Raises:
        SessionException: They are a newer version's.
    """
    version = _version(transaction)
    if version > len(STEPS):
        raise SessionException(
            f"the sessions in {where} are of version {version}, and this is {len(STEPS)}: "
            "pip install --upgrade ropewalk-session-sql"
        )

    return version == len(STEPS)


def migrate(transaction: Transaction, where: str) -> None:
    """Takes the steps that are missing, in one transaction. Others who want to do the same wait.

    Raises:
        SessionException: The tables are a newer version's.
    """
    transaction.execute(_LOCK[transaction.dialect])
    if is_current(transaction, where):
        return

    version = _version(transaction)
    if version == 0:
        transaction.execute("CREATE TABLE ropewalk_schema (version INTEGER NOT NULL)")
        transaction.execute("INSERT INTO ropewalk_schema (version) VALUES (0)")

    for step in STEPS[version:]:
        for statement in step:
            transaction.execute(statement.format_map(_DIALECTS[transaction.dialect]))

    transaction.execute("UPDATE ropewalk_schema SET version = ?", len(STEPS))


def _version(transaction: Transaction) -> int:
    """The version of the tables; 0 when there are none."""
    if not transaction.rows(_EXISTS[transaction.dialect]):
        return 0

    rows = transaction.rows("SELECT version FROM ropewalk_schema")
    return int(rows[0][0]) if rows else 0
