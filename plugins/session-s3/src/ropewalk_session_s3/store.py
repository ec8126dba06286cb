"""The store: a folder of objects for each log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import Lease, LogInfo, LogKey, SessionConflictError, SessionException, StoredLog
from ropewalk.kits.sessions.names import safe_name
from ropewalk_session_s3.bucket import Bucket, Listed
from ropewalk_session_s3.head import Head, name_of
from ropewalk_session_s3.leases import S3Lease
from ropewalk_session_s3.log import HEAD, Log

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config


class S3LogStore:
    """Keeps logs in a bucket: one object a commit. Connects at the first use, and again after a fork.

    Args:
        bucket: The bucket's name; the bucket is there already.
        prefix: In front of all keys.
        boto_session: Where credentials and region come from.
        region_name: In front of the session's region.
        endpoint_url: In front of the region's own endpoint.
        boto_client_config: More of botocore's configuration.

    Raises:
        SessionException: The bucket's name is no text, or blank.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        boto_session: Session | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        boto_client_config: Config | None = None,
    ) -> None:
        if not isinstance(bucket, str) or not bucket.strip():
            raise SessionException(f"bucket={bucket!r}: give the name of an S3 bucket")

        self._bucket = Bucket(bucket, boto_session, region_name, endpoint_url, boto_client_config)
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._leases: WeakValueDictionary[LogKey, S3Lease] = WeakValueDictionary()
        self._ends: dict[LogKey, int] = {}
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bucket.name!r}, {self._prefix!r})"

    def read(self, key: LogKey) -> StoredLog | None:
        """The log, or None when there is none.

        Raises:
            SessionDamagedError: An object is missing or damaged.
            SessionException: The bucket cannot be reached, or something is a newer version's.
        """
        found = self._log(key).read()
        if found is not None:
            self._ends[key] = found.position

        return found

    async def lease(self, key: LogKey) -> Lease:
        """Takes the log for a run. While it lasts, a thread of this process renews the lease.

        Raises:
            SessionConflictError: Another live writer has it.
            SessionException: The bucket cannot be reached.
        """
        taking = _Taking(self._log(key))
        try:
            lease = await in_thread(taking.take)
        except asyncio.CancelledError:
            taking.give_up()
            raise

        self._leases[key] = lease
        return lease

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Adds records in one object. Those that are there already, from `position` on, are not added again.

        Raises:
            SessionConflictError: The log does not end at `position`, or the lease was lost.
            SessionException: The bucket cannot be reached or written.
        """
        if not records:
            return position

        texts = [record.to_json() for record in records]
        end = await in_thread(self._log(key).append, texts, position, self._ends.get(key))
        self._ends[key] = end
        return end

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """Puts records in the place of all that the log has: a new generation of objects; then the old one is deleted.

        Raises:
            SessionConflictError: The log does not end at `position`, or the lease was lost.
            SessionException: The bucket cannot be reached or written.
        """
        texts = [record.to_json() for record in records]
        end = await in_thread(self._log(key).replace, texts, position)
        self._ends[key] = end
        return end

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """The logs that there are, of one session or of all, by key."""
        infos = []
        folders = self._folders(session_id)
        heads = self._bucket.get_all([folder + HEAD for folder in folders])
        for (folder, objects), found in zip(folders.items(), heads, strict=True):
            if found is None:
                continue

            head = Head.from_bytes(found.body, f"{self._bucket}: {folder}{HEAD}")
            counted = [each for each in objects if each.key.startswith(f"{folder}{name_of(head.generation)}/")]
            if counted:
                size, changed = sum(each.size for each in objects), max(each.changed for each in counted)
                infos.append(LogInfo(head.key, size, changed))

        return sorted(infos, key=lambda info: (info.key.session_id, info.key.agent_id))

    def delete(self, session_id: str) -> bool:
        """Removes all logs of a session; False when there were none.

        Raises:
            SessionConflictError: A live writer has one of them.
            SessionException: The bucket cannot be reached or written.
        """
        folders = self._folders(session_id)
        names = [folder + HEAD for folder in folders]
        etags = {}
        for name, found in zip(names, self._bucket.get_all(names), strict=True):
            if found is not None:
                if Head.from_bytes(found.body, f"{self._bucket}: {name}").is_taken(found.age):
                    raise self._in_use(session_id)

                etags[name] = found.etag

        again = self._folders(session_id)  # a run may have written and ended since; none does while the heads are these
        for folder in folders:
            if folder + HEAD in etags:
                folders[folder] = again.get(folder, [])

        for name, etag in etags.items():
            if not self._bucket.delete_if(name, etag):
                raise self._in_use(session_id)

        segments = [each.key for objects in folders.values() for each in objects if not each.key.endswith(f"/{HEAD}")]
        self._bucket.delete(segments)
        return bool(segments)

    def close(self) -> None:
        """Closes idle connections; the next use opens others."""
        self._bucket.close()

    def _log(self, key: LogKey) -> Log:
        lease = self._leases.get(key)
        mine = lease is not None and lease.is_mine and lease.head.holder is not None
        return Log(self._bucket, self._prefix, key, lease if mine else None)

    def _folders(self, session_id: str | None) -> dict[str, list[Listed]]:
        """The objects of each log, by its folder."""
        folders: dict[str, list[Listed]] = {}
        prefix = self._prefix if session_id is None else f"{self._prefix}{safe_name(session_id)}/"
        for listed in self._bucket.listed(prefix):
            session, _, rest = listed.key.removeprefix(self._prefix).partition("/")
            agent, slash, _ = rest.partition("/")
            if slash:
                folders.setdefault(f"{self._prefix}{session}/{agent}/", []).append(listed)

        return folders

    def _in_use(self, session_id: str) -> SessionConflictError:
        return SessionConflictError(
            f"session {session_id!r} is in use by a run, in {self._bucket}: delete it after its end"
        )


class _Taking:
    """Takes a lease in a thread; gives it up again when nobody waits for it any more."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._guard = threading.Lock()
        self._given_up = False
        self._lease: S3Lease | None = None

    def take(self) -> S3Lease:
        lease = self._log.take()
        with self._guard:
            given_up, self._lease = self._given_up, lease

        if given_up:
            lease.give_up()

        return lease

    def give_up(self) -> None:
        with self._guard:
            self._given_up, lease = True, self._lease

        if lease is not None:
            threading.Thread(target=lease.give_up, name="ropewalk-lease", daemon=True).start()
