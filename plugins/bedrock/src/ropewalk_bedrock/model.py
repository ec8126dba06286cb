"""The model object that agents use."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.messages.estimate import estimate_tokens
from ropewalk_bedrock import windows
from ropewalk_bedrock.answer import Reader, events_of
from ropewalk_bedrock.bridge import from_thread
from ropewalk_bedrock.client import ClientSource
from ropewalk_bedrock.errors import translated
from ropewalk_bedrock.request import converse_arguments, count_arguments
from ropewalk_bedrock.settings import Settings
from ropewalk_bedrock.wire import Wire

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config

    from ropewalk.model import ModelRequest
    from ropewalk.types import StreamEvent

logger = logging.getLogger("ropewalk.bedrock")

_CHARS_PER_TOKEN: Final = 4


class BedrockModel:
    """A model of Amazon Bedrock, called through boto3's Converse operations.

    boto3 is loaded and the client made at the first call. One object may serve many agents, threads and event loops at
    once; after a fork the child makes a client of its own.

    Args:
        model_id: Model, inference profile or ARN; `DEFAULT_MODEL` when None.
        boto_session: Where credentials and region come from.
        boto_client_config: More of botocore's configuration; its values win over the defaults (no retries of its own,
            120 s of silence are an error).
        region_name: In front of the session's region; `us-west-2` when nobody names one.
        endpoint_url: In front of the region's endpoint.
        api_key: A Bedrock API key in place of AWS credentials.
        **settings: See `Settings`.

    Raises:
        pydantic.ValidationError: A setting is unknown or has a value that makes no sense.
        ValueError: Both `boto_session` and `api_key`.
    """

    def __init__(
        self,
        model_id: str | None = None,
        *,
        boto_session: Session | None = None,
        boto_client_config: Config | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        api_key: str | None = None,
        **settings: Any,
    ) -> None:
        self._settings = Settings(**settings) if model_id is None else Settings(model_id=model_id, **settings)
        self._source = ClientSource(boto_session, boto_client_config, region_name, endpoint_url, api_key)
        self._uncountable: set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.model_id!r})"

    # -- settings ------------------------------------------------------------------------------------------------

    @property
    def model_id(self) -> str:
        """The model's id as it was given."""
        return self._settings.model_id

    @property
    def context_window(self) -> int | None:
        """Tokens of the model's window: `context_window_limit`, or what is known of the id."""
        return self._settings.context_window_limit or windows.context_window(self._settings.model_id)

    def update_config(self, **settings: Any) -> None:
        """Changes settings, from the next call on.

        Raises:
            pydantic.ValidationError: As the constructor; nothing is changed then.
        """
        self._settings = Settings.model_validate({**self.get_config(), **settings})

    def get_config(self) -> dict[str, Any]:
        """The settings that are set, as a new dict."""
        return {"model_id": self.model_id, **self._settings.model_dump(exclude_defaults=True)}

    def close(self) -> None:
        """Closes idle connections; the model can be used again."""
        self._source.close()

    # -- calls ---------------------------------------------------------------------------------------------------

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer to one request.

        A worker thread waits for the provider. Closing or cancelling the iterator returns at once and shuts down the
        connection that the thread reads from.

        Args:
            request: The conversation and the tools on offer.

        Returns:
            The stream's events. Without `streaming` they come together, when the answer is complete.

        Raises:
            ModelError: See `ropewalk.kits.model_errors`; the provider's own words are kept.
        """
        settings, wire = self._settings, Wire()
        arguments = converse_arguments(request, settings)

        def read(put: Callable[[StreamEvent], None]) -> None:
            with wire:
                if not wire.ended:
                    self._read(arguments, settings, wire, put)

        return from_thread(read, wire.end)

    def count_tokens(self, request: ModelRequest) -> int:
        """The number of tokens of a request.

        With `use_native_token_count` the provider counts, and the calling thread waits for it: use `count_tokens_async`
        on an event loop. Where the provider does not count for this model, and without that setting, it is an estimate.
        """
        settings = self._settings
        if settings.use_native_token_count and settings.model_id not in self._uncountable:
            try:
                answer = self._source.get().count_tokens(**count_arguments(request, settings))
                return int(answer["inputTokens"])
            except Exception as error:  # noqa: BLE001 - a count is never worth a failed run
                self._cannot_count(error, settings.model_id)

        return _estimate(request)

    async def count_tokens_async(self, request: ModelRequest) -> int:
        """Like `count_tokens`, while the event loop goes on."""
        return await in_thread(self.count_tokens, request)

    def _read(
        self, arguments: dict[str, Any], settings: Settings, wire: Wire, put: Callable[[StreamEvent], None]
    ) -> None:
        """Makes the call and hands on what comes; in a worker thread."""
        region: str | None = None
        reader = Reader(settings)
        stream: Any = None
        try:
            client = self._source.get()
            region = client.meta.region_name
            if settings.streaming:
                stream = events = client.converse_stream(**arguments)["stream"]
            else:
                events = events_of(client.converse(**arguments))

            for event in events:
                for each in reader.read(event):
                    put(each)

                if wire.ended:
                    return
        except Exception as error:
            if wire.ended:
                return  # it is the consequence of our own shutdown

            failure = translated(error, settings.model_id, region)
            if not reader.stopped:
                raise failure from error

            # The answer is there and paid for: another one would be paid for again.
            logger.warning("an answer is complete, but what it cost is not known: %s", failure)
        finally:
            if stream is not None:
                stream.close()

        for each in reader.end():
            put(each)

    def _cannot_count(self, error: Exception, model_id: str) -> None:
        failure = translated(error, model_id, None)
        if not failure.retryable:
            self._uncountable.add(model_id)

        logger.warning("tokens are estimated, because the provider does not count them: %s", failure)


def _estimate(request: ModelRequest) -> int:
    told = [json.dumps(spec, default=str) for spec in request.tool_specs]
    told += [block["text"] for block in request.system if "text" in block]
    return estimate_tokens(request.messages) + sum(-(-len(text) // _CHARS_PER_TOKEN) for text in told)
