"""The model object that agents use."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ropewalk_litellm import background, library, prices
from ropewalk_litellm.errors import translated
from ropewalk_litellm.events import EventWriter
from ropewalk_litellm.repair import repaired
from ropewalk_litellm.request import arguments
from ropewalk_litellm.settings import CacheConfig, Settings

if TYPE_CHECKING:
    from ropewalk.model import ModelRequest
    from ropewalk.types import StreamEvent


logger = logging.getLogger("ropewalk.litellm")


class LiteLLMModel:
    """A model of any provider that LiteLLM knows.

    LiteLLM is loaded by the first call. One object may serve many agents, threads and event loops at once.

    Args:
        model_id: LiteLLM's name of the model, with its provider: `"openai/gpt-4o"`, `"anthropic/claude-sonnet-4-5"`.
        params: Parameters of the request as `litellm.acompletion` takes them: `temperature`, `max_tokens` ...
        stream: Whether to ask for the answer in pieces.
        client_args: How to reach the provider: `api_key`, `api_base`, `timeout`, `extra_headers` ...
        context_window_limit: Tokens of the context window, in place of what LiteLLM knows.
        cache_config: `{"strategy": "auto"}` sets cache points after the tools, the system prompt and the last user
            turn, where the caller has set none.

    Raises:
        ValueError: A setting makes no sense.
    """

    def __init__(
        self,
        model_id: str,
        *,
        params: Mapping[str, Any] | None = None,
        stream: bool = True,
        client_args: Mapping[str, Any] | None = None,
        context_window_limit: int | None = None,
        cache_config: CacheConfig | Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = Settings.model_validate(
            {
                "model_id": model_id,
                "params": dict(params or {}),
                "stream": stream,
                "client_args": dict(client_args or {}),
                "context_window_limit": context_window_limit,
                "cache_config": cache_config,
            }
        )

    @property
    def model_id(self) -> str:
        """LiteLLM's name of the model."""
        return self._settings.model_id

    @property
    def context_window(self) -> int | None:
        """Tokens of a request: as set, else what LiteLLM's table says once it is loaded, else None."""
        return self._settings.context_window_limit or prices.window_of(self.model_id)

    @property
    def supports_output_schema(self) -> bool:
        """Whether an answer can be held to `ModelRequest.output_schema`, as far as LiteLLM's table knows."""
        known = prices.entry_of(self.model_id)
        return known is None or known.get("supports_response_schema", True) is not False

    def update_config(self, **settings: Any) -> None:
        """Changes settings, for the calls that come.

        Raises:
            ValueError: There is no such setting, or it makes no sense.
        """
        self._settings = Settings.model_validate({**self.get_config(), **settings})

    def get_config(self) -> dict[str, Any]:
        """The settings, as a dict of one's own."""
        return self._settings.model_dump()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer to one request.

        Closing or cancelling the iterator closes the connection to the provider.

        Args:
            request: The conversation and the tools on offer.

        Yields:
            The stream's events, ending in `messageStop` and `metadata`.

        Raises:
            ModelThrottledException: The provider wants fewer requests.
            ContextWindowOverflowException: The request does not fit into the model's window.
            ModelError: Any other failure, with the provider's own message.
        """
        call = arguments(self._settings, request)

        async def work(put: background.Put[StreamEvent]) -> None:
            await _complete(call, put)

        async with aclosing(background.in_background(work)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event


async def _complete(call: dict[str, Any], put: background.Put[StreamEvent]) -> None:
    """One call, on the background loop."""
    litellm = library.litellm()
    writer = EventWriter()
    started = time.monotonic()
    try:
        answer = await litellm.acompletion(**call)
        put(writer.start())
        if hasattr(answer, "__aiter__"):
            await _read(answer, writer, put)
        else:
            for event in _whole(answer, writer):
                put(event)

        for event in writer.end(round((time.monotonic() - started) * 1000)):
            put(event)
    except Exception as error:
        raise translated(error, begun=writer.begun) from error


async def _read(answer: Any, writer: EventWriter, put: background.Put[StreamEvent]) -> None:
    stream = repaired(answer)
    try:
        async for chunk in stream:
            writer.usage(getattr(chunk, "usage", None))
            for choice in chunk.choices or ():
                if getattr(choice, "index", 0):
                    continue  # one answer is wanted; params asked for several

                for event in writer.piece(choice.delta):
                    put(event)

                if choice.finish_reason:
                    writer.finish(_reason(stream, choice.finish_reason))
    except Exception as error:
        own = getattr(stream, "received_finish_reason", None)  # LiteLLM says it when the stream has ended
        if own is not None and not writer.finished:
            writer.finish(_known_reasons().get(str(own), own))

        if not writer.finished:
            raise

        # The answer is there and paid for: another one would be paid for again.
        logger.warning("an answer is complete, but what it cost may not be known: %s", translated(error))
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _reason(stream: Any, told: str) -> str | None:
    """Why the provider stopped.

    LiteLLM says "stop" for a stream that said nothing, and for reasons that it does not know: it keeps the provider's
    own word beside it.
    """
    unknown = object()
    own = getattr(stream, "received_finish_reason", unknown)
    if own is unknown:
        return told

    if own is None:
        return getattr(stream, "intermittent_finish_reason", None)

    if told == "stop" and str(own) not in _known_reasons():
        return str(own)

    return told


def _known_reasons() -> Mapping[str, Any]:
    helpers = importlib.import_module("litellm.litellm_core_utils.core_helpers")  # loaded long ago
    return {"stop": "stop", **getattr(helpers, "_FINISH_REASON_MAP", {})}


def _whole(answer: Any, writer: EventWriter) -> list[StreamEvent]:
    choices = getattr(answer, "choices", None) or ()
    events: list[StreamEvent] = []
    for choice in choices[:1]:
        events += writer.piece(choice.message)
        writer.finish(choice.finish_reason)

    writer.usage(getattr(answer, "usage", None))
    return events
