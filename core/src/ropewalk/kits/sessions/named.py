"""A session plugin under its name: a session manager that is made from options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import pydantic

from ropewalk.kits.log.fold import LogState
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions.manager import SessionManager
from ropewalk.markers import hookimpl

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.sessions")


class RetentionOptions(pydantic.BaseModel):
    """The options of every session plugin.

    Attributes:
        keep_last: Runs that are kept record by record. Default: all.
        max_age: Seconds for which runs are kept record by record. Default: for ever.
        compact_to_latest: Whether only the latest state is kept.
    """

    keep_last: int | None = pydantic.Field(default=None, ge=0)
    max_age: float | None = pydantic.Field(default=None, ge=0, allow_inf_nan=False)
    compact_to_latest: bool = False


class NamedSession:
    """What `plugins=[("session-...", {...})]` gives: the hooks of a manager, or a warning that nothing is kept.

    Attributes:
        name: The plugin's name.
        lacks: What the plugin says when it has no manager: what is missing, after its name.
        remedy: What to give it then.
        manager: The manager of its options; None when they are too few for one.
    """

    name: ClassVar[str]
    lacks: ClassVar[str]
    remedy: ClassVar[str]
    manager: SessionManager | None

    @hookimpl
    def read_records(self, agent: Agent) -> LogState | None:
        """Reads the agent's log.

        Raises:
            SessionException: Another agent of the session has the id, or the log cannot be read.
        """
        if self.manager is not None:
            return self.manager.read_records(agent)

        logger.warning(
            "plugin %r %s, so that nothing of agent %r is kept: give it %s",
            self.name, self.lacks, agent.agent_id, self.remedy,
        )  # fmt: skip
        return None

    @hookimpl
    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records before the run goes on.

        Raises:
            SessionConflictError: Another writer has the session.
            SessionException: It cannot be written.
        """
        if self.manager is not None:
            await self.manager.write_records(records, agent)

    @hookimpl
    async def on_close(self, agent: Agent) -> None:
        """Writes what was changed since the last run, and frees the agent's id.

        Raises:
            SessionException: It cannot be written.
        """
        if self.manager is not None:
            await self.manager.on_close(agent)
