"""The boto3 client of a model: made at the first call, in the thread that calls, once per process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

from ropewalk_bedrock.wire import watch

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config

DEFAULT_REGION: Final = "us-west-2"
_SERVICE: Final = "bedrock-runtime"
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 120
_CONNECTIONS: Final = 64


class ClientSource:
    """Makes and keeps the client. boto3's clients may be used by any number of threads, and belong to no event loop.

    Args:
        session: The session to take credentials and region from; a new one when None.
        config: More of botocore's configuration, in front of the defaults.
        region_name: In front of the session's region.
        endpoint_url: In front of the region's own endpoint.
        api_key: A Bedrock API key, in place of AWS credentials.

    Raises:
        ValueError: Both a session and an API key.
    """

    def __init__(
        self,
        session: Session | None = None,
        config: Config | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        if session is not None and api_key is not None:
            raise ValueError("BedrockModel: boto_session and api_key both say who calls: give one of them")

        self._session = session
        self._config = config
        self._region = region_name
        self._endpoint = endpoint_url
        self._api_key = api_key
        self._of_process = _OfProcess()

    def get(self) -> Any:
        """The client. Blocks while it is made.

        Raises:
            botocore.exceptions.BotoCoreError: A setting of boto3's, such as the profile, is wrong.
        """
        mine = self._of_process
        if mine.pid != os.getpid():
            # After a fork: the connections are the parent's, and a lock may be held by a thread that is not here.
            mine = self._of_process = _OfProcess()

        client = mine.client
        if client is None:
            with mine.guard:
                client = mine.client = mine.client or self._make()

        return client

    def close(self) -> None:
        """Closes idle connections. The client can be used again."""
        mine = self._of_process
        if mine.client is not None and mine.pid == os.getpid():
            mine.client.close()

    def _make(self) -> Any:
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,
            retries={"total_max_attempts": 1, "mode": "standard"},  # the agent repeats calls, at one place
            user_agent_extra="ropewalk",
        )
        if self._config is not None:
            config = config.merge(self._config)

        if self._api_key is not None:
            config = config.merge(Config(signature_version="bearer"))

        session = self._session or _new_session(self._api_key)
        region = self._region or session.region_name or DEFAULT_REGION
        client = session.client(_SERVICE, region_name=region, endpoint_url=self._endpoint, config=config)
        watch(client)
        return client


class _OfProcess:
    """What belongs to one process."""

    __slots__ = ("client", "guard", "pid")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.guard = threading.Lock()
        self.client: Any = None


_loaders: dict[Any, Any] = {}


def _new_session(api_key: str | None) -> Session:
    """A session of its own, so that a key reaches neither the environment nor other clients.

    boto3's description of the service is read once per process: reading it is most of what a client costs.
    """
    import boto3
    import botocore.session
    from botocore.loaders import create_loader

    inner = botocore.session.get_session()
    path = inner.get_config_variable("data_path")
    loader = _loaders.setdefault(path, create_loader(path))
    inner.register_component("data_loader", loader)
    if api_key is not None:
        inner.register_component("token_provider", _KeyProvider(api_key))

    session = boto3.Session(botocore_session=inner)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session adds boto3's own folder
    return session


class _KeyProvider:
    """Gives botocore the API key where it looks for tokens."""

    def __init__(self, api_key: str) -> None:
        self._token = _Token(api_key)

    def load_token(self, **_: Any) -> _Token:
        return self._token


class _Token:
    """A token that does not expire, in the form that botocore's signers ask for."""

    def __init__(self, api_key: str) -> None:
        self._api_key = api_key

    def get_frozen_token(self) -> Any:
        from botocore.tokens import FrozenAuthToken

        return FrozenAuthToken(self._api_key)
