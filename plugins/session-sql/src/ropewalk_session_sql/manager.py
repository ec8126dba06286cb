"""The session manager with a database."""

from __future__ import annotations

from typing import Literal

from ropewalk.kits.sessions import SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_session_sql.store import SQLLogStore


class SQLSessionManager(SessionManager):
    """Keeps the conversations of a session in a database: SQLite or PostgreSQL.

    An agent that is built with a manager of a session that exists goes on where it ended. See `SessionManager`.

    Args:
        session_id: Names the session; any text that is not blank.
        url: `sqlite:///path/to/file` or `postgresql://user:password@host/database`. Default: the SQLite file
            `.ropewalk/sessions/sessions.sqlite3` in the user's home.
        durability: For SQLite. `"process"`: what was written survives the end of the process. `"power"`: also a power
            cut; each commit waits for the disk.
        keep_last: Keeps so many runs record by record; None for all.
        max_age: Keeps runs record by record for so many seconds; None for ever.
        compact_to_latest: Keeps the latest state alone.

    Raises:
        SessionException: The id is no text, or blank; the URL cannot be used.
        ValueError: An option is wrong.
    """

    def __init__(
        self,
        session_id: str,
        url: str | None = None,
        *,
        durability: Literal["process", "power"] = "process",
        keep_last: int | None = None,
        max_age: float | None = None,
        compact_to_latest: bool = False,
    ) -> None:
        store = SQLLogStore(url, durability)
        super().__init__(session_id, store, Retention(keep_last, max_age, compact_to_latest))
        self._store = store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self._store!r})"

    def close(self) -> None:
        """Closes the connections. They are opened again when the manager is used again."""
        self._store.close()
