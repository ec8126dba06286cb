"""The plugin under its name: a session manager that is made from options."""

from __future__ import annotations

from typing import final

from ropewalk.kits.sessions import SessionException
from ropewalk.kits.sessions.named import NamedSession, RetentionOptions
from ropewalk_session_s3.manager import S3SessionManager
from ropewalk_session_s3.store import S3LogStore


@final
class S3SessionPlugin(NamedSession):
    """What `plugins=[("session-s3", {"session_id": ..., "bucket": ...})]` gives: an `S3SessionManager` of those."""

    name = "session-s3"
    lacks = "lacks session_id or bucket"
    remedy = 'plugins=[("session-s3", {"session_id": ..., "bucket": ...})], or session_manager=S3SessionManager(...)'

    class Config(RetentionOptions):
        """Options of the plugin; see `S3SessionManager`.

        Attributes:
            session_id: Names the session. Without it and a bucket nothing is kept, and a warning says so.
            bucket: The bucket's name.
            prefix: In front of all keys.
            region_name: In front of the region that boto3 finds.
            endpoint_url: In front of the region's own endpoint.
        """

        session_id: str | None = None
        bucket: str | None = None
        prefix: str = ""
        region_name: str | None = None
        endpoint_url: str | None = None

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
