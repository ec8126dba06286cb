"""What answers for `session_manager` when its value is no plugin."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, final

from ropewalk import hookimpl
from ropewalk.kits.sessions.named import RetentionOptions
from ropewalk_session_file.manager import FileSessionManager
from ropewalk_session_file.store import Durability, FileLogStore

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.session-file")


@final
class SessionFilePlugin:
    """Makes the manager of `Agent(session_manager="some id")`, with the options of the plugin."""

    name = "session-file"

    class Config(RetentionOptions):
        """Options of managers that are made from an id; see `FileSessionManager`.

        Attributes:
            storage_dir: The folder of all sessions. Default: `.ropewalk/sessions` in the user's home.
            durability: `"process"` or `"power"`. Default `"process"`.
        """

        storage_dir: str | None = None
        durability: Durability = "process"

    def __init__(self, config: Config | None = None) -> None:
        self._options = (config or self.Config()).model_dump()

    def open_store(self, spec: str | None) -> FileLogStore:
        """The store in a folder; for `ropewalk.kits.sessions.opening`.

        Args:
            spec: The folder, also as `file:///path`; that of the options when None.
        """
        if spec is not None and spec.startswith("file://"):
            spec = spec.removeprefix("file://") or None

        folder = self._options["storage_dir"] if spec is None else spec
        return FileLogStore(folder, durability=self._options["durability"])

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> FileSessionManager | None:
        """Takes the id of a session.

        Raises:
            SessionException: The id is blank.
            ValueError: It is no id either.
        """
        if parameter != "session_manager":
            return None

        if isinstance(value, str):
            return FileSessionManager(value, **self._options)

        raise ValueError(
            f"{parameter}={value!r:.200} is no session manager: give FileSessionManager(session_id=...), the id alone, "
            "or another plugin with read_records and write_records"
        )

    @hookimpl
    def on_agent_ready(self, agent: Agent) -> None:
        """Says so when the plugin was asked for and no session is kept."""
        if agent.session_manager is None:
            logger.warning(
                "plugin 'session-file' is active and agent %r has no session: give session_manager=ID too", agent.name
            )
