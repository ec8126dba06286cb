"""A bucket: objects, conditional writes, lists. Everything here blocks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ropewalk.kits.sessions import SessionException

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config

T = TypeVar("T")

_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 20
_ATTEMPTS: Final = 4
_AT_ONCE: Final = 16
_BATCH: Final = 1000  # keys that one request may delete
_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds to wait while another write of the same object is under way: it may be our own, whose answer was lost."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object that was fetched.

    Attributes:
        body: What is in it.
        etag: Changes with each write.
        age: Seconds since it was written, both ends on the server's clock.
    """

    body: bytes
    etag: str
    age: float


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a list. `changed` is in seconds since the epoch."""

    key: str
    size: int
    changed: float


class Bucket:
    """One bucket. Its client is made at the first use, once per process.

    Args:
        name: The bucket.
        session: Where credentials and region come from; a new session when None.
        region_name: In front of the session's region.
        endpoint_url: In front of the region's own endpoint.
        config: More of botocore's configuration, in front of the defaults.
    """

    def __init__(
        self,
        name: str,
        session: Session | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        config: Config | None = None,
    ) -> None:
        self.name = name
        self._session = session
        self._region = region_name
        self._endpoint = endpoint_url
        self._config = config
        self._of_process = _OfProcess()

    def get(self, key: str) -> Object | None:
        """An object, or None when there is none."""
        try:
            answer, body = self._call(_fetched, key)
        except _Refused as refused:
            if refused.code == "NoSuchKey":
                return None

            raise self._error(refused) from refused.__cause__

        return Object(body, answer["ETag"], _age(answer))

    def get_all(self, keys: Sequence[str]) -> list[Object | None]:
        """Several objects, fetched at the same time, in the order of their keys."""
        if len(keys) <= 1:
            return [self.get(key) for key in keys]

        with ThreadPoolExecutor(min(_AT_ONCE, len(keys)), thread_name_prefix="ropewalk-s3") as pool:
            return list(pool.map(self.get, keys))

    def put(self, key: str, body: bytes, *, etag: str | None) -> str | None:
        """Writes an object, provided that it still has an ETag, or, for None, that there is none.

        Returns:
            Its ETag now; None when the condition does not hold, and nothing was written.

        Raises:
            SessionException: It cannot be written, or others write it again and again.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        for pause in _PAUSES:
            try:
                answer = self._call(
                    lambda client, bucket: client.put_object(Bucket=bucket, Key=key, Body=body, **condition)
                )
            except _Refused as refused:
                if refused.code == "ConditionalRequestConflict":
                    time.sleep(pause)
                    continue

                if refused.status == 412 or (refused.code == "NoSuchKey" and etag is not None):  # noqa: PLR2004
                    return None

                raise self._error(refused) from refused.__cause__

            return str(answer["ETag"])

        raise SessionException(f"{self}: another write of {key} is under way all the time: call the agent again")

    def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """The objects whose keys begin with a prefix and come after another key, in order."""
        arguments: dict[str, Any] = {"Prefix": prefix, **({"StartAfter": after} if after else {})}
        while True:
            page = self._ask(lambda client, bucket: client.list_objects_v2(Bucket=bucket, **arguments))
            for entry in page.get("Contents", ()):
                yield Listed(entry["Key"], int(entry["Size"]), entry["LastModified"].timestamp())

            if not page.get("IsTruncated"):
                return

            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects; those that are not there are no error.

        Raises:
            SessionException: One of them could not be removed.
        """
        for begin in range(0, len(keys), _BATCH):
            named = {"Objects": [{"Key": key} for key in keys[begin : begin + _BATCH]], "Quiet": True}
            answer = self._ask(lambda client, bucket: client.delete_objects(Bucket=bucket, Delete=named))  # noqa: B023 - called at once
            for failed in answer.get("Errors", ()):
                raise SessionException(
                    f"{self}: {failed.get('Key')} could not be deleted ({failed.get('Code')}): see that "
                    "s3:DeleteObject is allowed, and repeat it"
                )

    def delete_if(self, key: str, etag: str) -> bool:
        """Removes an object, provided that it still has an ETag; whether it is gone."""
        try:
            self._call(lambda client, bucket: client.delete_object(Bucket=bucket, Key=key, IfMatch=etag))
        except _Refused as refused:
            if refused.code == "NoSuchKey":
                return True  # the first answer was lost, and the request was repeated

            if refused.status in (409, 412):
                return False

            raise self._error(refused) from refused.__cause__

        return True

    def close(self) -> None:
        """Closes idle connections. The bucket can be used again."""
        mine = self._of_process
        if mine.pid == os.getpid() and mine.client is not None:
            mine.client.close()

    def __str__(self) -> str:
        return f"bucket {self.name!r}"

    # -- calls -----------------------------------------------------------------------------------------------------

    def _ask(self, call: Callable[[Any, str], Any]) -> Any:
        try:
            return self._call(call)
        except _Refused as refused:
            raise self._error(refused) from refused.__cause__

    def _call(self, call: Callable[..., T], *arguments: Any) -> T:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return call(self._client(), self.name, *arguments)
        except ClientError as error:
            raise _Refused(error.response) from error
        except (BotoCoreError, OSError, ValueError) as error:
            raise SessionException(
                f"{self} cannot be reached ({type(error).__name__}: {error}): see that network, credentials, region "
                "and endpoint are right"
            ) from error

    def _error(self, refused: _Refused) -> SessionException:
        advice = {
            "NoSuchBucket": "make the bucket, or give another one",
            "AccessDenied": "allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket",
            "NotImplemented": "use a store that knows If-None-Match and If-Match",
        }.get(refused.code, "see that the bucket can be read and written")
        return SessionException(f"{self} refuses ({refused.code}: {refused.message}): {advice}")

    def _client(self) -> Any:
        mine = self._of_process
        if mine.pid != os.getpid():
            # After a fork: the connections are the parent's, and a lock may be held by a thread that is not here.
            mine = self._of_process = _OfProcess()

        if mine.client is None:
            with mine.guard:
                mine.client = mine.client or self._made()

        return mine.client

    def _made(self) -> Any:
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            max_pool_connections=2 * _AT_ONCE,
            retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            user_agent_extra="ropewalk",
        )
        if self._config is not None:
            config = config.merge(self._config)

        session = self._session or _new_session()
        region = self._region or session.region_name
        return session.client("s3", region_name=region, endpoint_url=self._endpoint, config=config)


class _Refused(Exception):  # noqa: N818 - an answer, which its caller understands
    """The service has answered with an error."""

    def __init__(self, response: Any) -> None:
        error = response.get("Error", {})
        self.code = str(error.get("Code", ""))
        self.message = str(error.get("Message", ""))
        self.status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        super().__init__(self.code)


class _OfProcess:
    """What belongs to one process."""

    __slots__ = ("client", "guard", "pid")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.guard = threading.Lock()
        self.client: Any = None


_loaders: Final[dict[Any, Any]] = {}


def _new_session() -> Session:
    """A session. boto3's description of S3 is read once per process: reading it is most of what a client costs."""
    import boto3
    import botocore.session
    from botocore.loaders import create_loader

    inner = botocore.session.get_session()
    path = inner.get_config_variable("data_path")
    loader = _loaders.setdefault(path, create_loader(path))
    inner.register_component("data_loader", loader)
    session = boto3.Session(botocore_session=inner)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session adds boto3's own folder
    return session


def _fetched(client: Any, bucket: str, key: str) -> tuple[Any, bytes]:
    answer = client.get_object(Bucket=bucket, Key=key)
    return answer, answer["Body"].read()


def _age(answer: Any) -> float:
    """How old an object is: the server says when it was written and when it answered."""
    written: datetime = answer["LastModified"]
    answered = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return (answered - written).total_seconds()
