"""The session manager with a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.kits.sessions import SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_session_s3.store import S3LogStore

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config


class S3SessionManager(SessionManager):
    """Keeps the conversations of a session in an S3 bucket.

    An agent that is built with a manager of a session that exists goes on where it ended. See `SessionManager`.

    Args:
        session_id: Names the session; any text that is not blank.
        bucket: The bucket's name; the bucket is there already.
        prefix: In front of all keys.
        boto_session: Where credentials and region come from. Default: a new session.
        region_name: In front of the session's region.
        endpoint_url: In front of the region's own endpoint: for other stores that speak S3.
        boto_client_config: More of botocore's configuration, in front of the defaults.
        keep_last: Keeps so many runs record by record; None for all.
        max_age: Keeps runs record by record for so many seconds; None for ever.
        compact_to_latest: Keeps the latest state alone.

    Raises:
        SessionException: The id, or the bucket's name, is no text, or blank.
        ValueError: An option is wrong.
    """

    def __init__(
        self,
        session_id: str,
        bucket: str,
        prefix: str = "",
        boto_session: Session | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        boto_client_config: Config | None = None,
        *,
        keep_last: int | None = None,
        max_age: float | None = None,
        compact_to_latest: bool = False,
    ) -> None:
        store = S3LogStore(bucket, prefix, boto_session, region_name, endpoint_url, boto_client_config)
        super().__init__(session_id, store, Retention(keep_last, max_age, compact_to_latest))
        self._store = store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self._store!r})"

    def close(self) -> None:
        """Closes idle connections. They are opened again when the manager is used again."""
        self._store.close()
