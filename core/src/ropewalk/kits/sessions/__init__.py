"""What the session plugins share: a manager on top of a store of logs, errors, names, retention."""

from __future__ import annotations

from ropewalk.kits.sessions.errors import SessionConflictError, SessionDamagedError, SessionException
from ropewalk.kits.sessions.manager import SessionManager
from ropewalk.kits.sessions.store import Lease, LogInfo, LogKey, LogStore, StoredLog

__all__ = [
    "Lease",
    "LogInfo",
    "LogKey",
    "LogStore",
    "SessionConflictError",
    "SessionDamagedError",
    "SessionException",
    "SessionManager",
    "StoredLog",
]
