"""The plugin under its name: a session manager that is made from options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import pydantic

from ropewalk import hookimpl
from ropewalk.kits.log.fold import LogState
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import SessionException
from ropewalk_session_s3.manager import S3SessionManager
from ropewalk_session_s3.store import S3LogStore

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.sessions")


@final
class S3SessionPlugin:
    """What `plugins=[("session-s3", {"session_id": ..., "bucket": ...})]` gives: an `S3SessionManager` of those."""

    name = "session-s3"

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `S3SessionManager`.

        Attributes:
            session_id: Names the session. Without it and a bucket nothing is kept, and a warning says so.
            bucket: The bucket's name.
            prefix: In front of all keys.
            region_name: In front of the region that boto3 finds.
            endpoint_url: In front of the region's own endpoint.
            keep_last: Runs that are kept record by record. Default: all.
            max_age: Seconds for which runs are kept record by record. Default: for ever.
            compact_to_latest: Whether only the latest state is kept.
        """

        session_id: str | None = None
        bucket: str | None = None
        prefix: str = ""
        region_name: str | None = None
        endpoint_url: str | None = None
        keep_last: int | None = pydantic.Field(default=None, ge=0)
        max_age: float | None = pydantic.Field(default=None, ge=0, allow_inf_nan=False)
        compact_to_latest: bool = False

    def __init__(self, config: Config | None = None) -> None:
        options = (config or self.Config()).model_dump()
        self._options = options
        complete = options["session_id"] is not None and options["bucket"] is not None
        self.manager = S3SessionManager(**options) if complete else None

    def open_store(self, spec: str | None) -> S3LogStore:
        """The store in a bucket; for `ropewalk.kits.sessions.opening`.

        Args:
            spec: `s3://bucket/prefix`; bucket and prefix of the options when None.

        Raises:
            SessionException: No bucket is named.
        """
        bucket, prefix = self._options["bucket"], self._options["prefix"]
        if spec is not None:
            bucket, _, prefix = spec.partition("://")[2].partition("/")

        if not bucket:
            raise SessionException(f"store={spec!r} names no bucket: give s3://BUCKET/PREFIX")

        return S3LogStore(
            bucket,
            prefix,
            region_name=self._options["region_name"],
            endpoint_url=self._options["endpoint_url"],
        )

    @hookimpl
    def read_records(self, agent: Agent) -> LogState | None:
        """Reads the agent's log.

        Raises:
            SessionException: Another agent of the session has the id, or the log cannot be read.
        """
        if self.manager is None:
            logger.warning(
                "plugin 'session-s3' lacks session_id or bucket, so that nothing of agent %r is kept: give it "
                'plugins=[("session-s3", {"session_id": ..., "bucket": ...})], or '
                "session_manager=S3SessionManager(...)",
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
