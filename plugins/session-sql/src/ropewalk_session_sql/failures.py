"""From a database's errors to the errors of sessions."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from ropewalk.kits.sessions import SessionDamagedError, SessionException

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError

_BUSY = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_DAMAGED = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB


def is_busy(error: SQLAlchemyError) -> bool:
    """Whether another process is writing to the SQLite file just now."""
    return _code(error) in _BUSY


def translated(error: SQLAlchemyError, where: str) -> SessionException:
    """The error to raise in place of a database's.

    Args:
        error: The database's error.
        where: The database.
    """
    reason = first_line(error)
    if _code(error) in _DAMAGED:
        return SessionDamagedError(f"{where} is damaged ({reason}): restore it from a backup; nothing was changed")

    return SessionException(f"{where}: {reason}. Nothing was stored; see that the database can be reached and written")


def first_line(error: SQLAlchemyError) -> str:
    """What the database says, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


def _code(error: SQLAlchemyError) -> int:
    original = getattr(error, "orig", None)
    code = getattr(original, "sqlite_errorcode", None) if isinstance(original, sqlite3.Error) else None
    return (code or 0) & 0xFF
