"""Sessions in a database: SQLite or PostgreSQL. Importing this loads no SQLAlchemy."""

from __future__ import annotations

from ropewalk_session_sql.manager import SQLSessionManager
from ropewalk_session_sql.plugin import SQLSessionPlugin
from ropewalk_session_sql.store import SQLLogStore

__all__ = ["SQLLogStore", "SQLSessionManager", "SQLSessionPlugin"]
