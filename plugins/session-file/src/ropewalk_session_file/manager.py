"""The session manager with files."""

from __future__ import annotations

from ropewalk.kits.sessions import SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_session_file.store import Durability, FileLogStore, StorageDir


class FileSessionManager(SessionManager):
    """Keeps the conversations of a session in files: one folder for the session, one file for each of its agents.

    An agent that is built with a manager of a session that exists goes on where it ended. See `SessionManager`.

    Args:
        session_id: Names the session; any text that is not blank.
        storage_dir: The folder of all sessions. Default: `.ropewalk/sessions` in the user's home.
        durability: `"process"`: what was written survives the end of the process. `"power"`: also a power cut; each
            commit waits for the disk.
        keep_last: Keeps so many runs record by record; None for all.
        max_age: Keeps runs record by record for so many seconds; None for ever.
        compact_to_latest: Keeps the latest state alone.

    Raises:
        SessionException: The id is no text, or blank.
        ValueError: An option is wrong.
    """

    def __init__(
        self,
        session_id: str,
        storage_dir: StorageDir = None,
        *,
        durability: Durability = "process",
        keep_last: int | None = None,
        max_age: float | None = None,
        compact_to_latest: bool = False,
    ) -> None:
        store = FileLogStore(storage_dir, durability=durability)
        super().__init__(session_id, store, Retention(keep_last, max_age, compact_to_latest))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self.store!r})"
