"""The plugin under its name: a session manager that is made from options."""

from __future__ import annotations

from typing import Literal, final

import pydantic

from ropewalk.kits.sessions.named import NamedSession, RetentionOptions
from ropewalk_session_sql.manager import SQLSessionManager
from ropewalk_session_sql.store import SQLLogStore


@final
class SQLSessionPlugin(NamedSession):
    """What `plugins=[("session-sql", {"session_id": "order-17"})]` gives: a `SQLSessionManager` with those options."""

    name = "session-sql"
    lacks = "has no session_id"
    remedy = 'plugins=[("session-sql", {"session_id": ...})], or session_manager=SQLSessionManager(...)'

    class Config(RetentionOptions):
        """Options of the plugin; see `SQLSessionManager`.

        Attributes:
            session_id: Names the session. Without one nothing is kept, and a warning says so.
            url: The database; a SQLite file in the home folder when None.
            durability: `"process"` or `"power"`.
        """

        session_id: str | None = None
        url: str | None = pydantic.Field(default=None, repr=False)  # a password may be in it
        durability: Literal["process", "power"] = "process"

    def __init__(self, config: Config | None = None) -> None:
        options = (config or self.Config()).model_dump()
        self._url, self._durability = options["url"], options["durability"]
        session_id = options.pop("session_id")
        self.manager = SQLSessionManager(session_id, **options) if session_id is not None else None

    def open_store(self, spec: str | None) -> SQLLogStore:
        """The store in a database; for `ropewalk.kits.sessions.opening`.

        Args:
            spec: The URL; that of the options when None.

        Raises:
            SessionException: The URL cannot be used.
        """
        return SQLLogStore(self._url if spec is None else spec, self._durability)
