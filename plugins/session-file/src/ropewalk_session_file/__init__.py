"""Sessions in files: append-only, checksummed, readable with a text editor."""

from __future__ import annotations

from ropewalk.kits.sessions import (
    SessionConflictError,
    SessionDamagedError,
    SessionException,
    SessionManager,
)
from ropewalk_session_file.manager import FileSessionManager
from ropewalk_session_file.plugin import SessionFilePlugin
from ropewalk_session_file.store import FileLogStore

__all__ = [
    "FileLogStore",
    "FileSessionManager",
    "SessionConflictError",
    "SessionDamagedError",
    "SessionException",
    "SessionFilePlugin",
    "SessionManager",
]
