"""The plugin under its name: a session manager that is made from options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, final

import pydantic

from ropewalk import hookimpl
from ropewalk.kits.log.fold import LogState
from ropewalk.kits.log.records import Record
from ropewalk_session_sql.manager import SQLSessionManager
from ropewalk_session_sql.store import SQLLogStore

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.sessions")


@final
class SQLSessionPlugin:
    """What `plugins=[("session-sql", {"session_id": "order-17"})]` gives: a `SQLSessionManager` with those options."""

    name = "session-sql"

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `SQLSessionManager`.

        Attributes:
            session_id: Names the session. Without one nothing is kept, and a warning says so.
            url: The database; a SQLite file in the home folder when None.
            durability: `"process"` or `"power"`.
            keep_last: Runs that are kept record by record. Default: all.
            max_age: Seconds for which runs are kept record by record. Default: for ever.
            compact_to_latest: Whether only the latest state is kept.
        """

        session_id: str | None = None
        url: str | None = pydantic.Field(default=None, repr=False)  # a password may be in it
        durability: Literal["process", "power"] = "process"
        keep_last: int | None = pydantic.Field(default=None, ge=0)
        max_age: float | None = pydantic.Field(default=None, ge=0, allow_inf_nan=False)
        compact_to_latest: bool = False

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

    @hookimpl
    def read_records(self, agent: Agent) -> LogState | None:
        """Reads the agent's log.

        Raises:
            SessionException: Another agent of the session has the id, or the log cannot be read.
        """
        if self.manager is None:
            logger.warning(
                "plugin 'session-sql' has no session_id, so that nothing of agent %r is kept: give it "
                'plugins=[("session-sql", {"session_id": ...})], or session_manager=SQLSessionManager(...)',
                agent.agent_id,
            )
            return None

        return self.manager.read_records(agent)

    @hookimpl
    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records before the run goes on.

        Raises:
            SessionConflictError: Another writer has the session.
            SessionException: It cannot be written.
        """
        if self.manager is not None:
            await self.manager.write_records(records, agent)
