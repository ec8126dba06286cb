"""The model object that agents use."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import ModelError
from ropewalk_local import catalog, fetch
from ropewalk_local.answer import ReplyDecoder
from ropewalk_local.bridge import Emit, from_thread
from ropewalk_local.cache import Stopped, never
from ropewalk_local.engine import Chunk, Engine, EngineSettings, open_engine
from ropewalk_local.events import EventWriter
from ropewalk_local.gguf import Header, read_header
from ropewalk_local.prompt import Renderer
from ropewalk_local.schema import refusal, reply_schema

if TYPE_CHECKING:
    from ropewalk.model import ModelRequest
    from ropewalk.types import StreamEvent

_CONTEXT_STEP: Final = 256  # the runtime rounds to it


class LocalModel:
    """A model that runs in this process, without key or network.

    Nothing is fetched or loaded before the first use. Objects of one file and equal settings share one engine, and
    one object may serve many agents, threads and event loops at once.

    Args:
        model_id: A name of the catalog, or the path of a `.gguf` file.
        n_ctx: Tokens of context of one conversation, rounded up to 256; at most what the model was trained for.
        threads: Threads that compute. More than the idle cores makes it slower, not faster.
        max_tokens: Tokens of one answer.
        temperature: 0 always takes the likeliest token, so equal requests get equal answers.
        seed: Seed for temperatures above 0; None is a new one each time.
        parallel: Conversations that are computed at once; more wait. Each takes its own context's memory.
        check_memory: Refuse to load what does not fit into the available memory.

    Raises:
        UnknownLocalModelError: The catalog has no such model, and it is no path.
        ValueError: A number makes no sense.

    Attributes:
        supports_output_schema: That an answer can be held to `ModelRequest.output_schema`.
    """

    supports_output_schema: Final = True

    def __init__(
        self,
        model_id: str | Path = catalog.DEFAULT_MODEL,
        *,
        n_ctx: int = 8192,
        threads: int = 1,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        seed: int | None = None,
        parallel: int = 2,
        check_memory: bool = True,
    ) -> None:
        for name, value in (("n_ctx", n_ctx), ("threads", threads), ("max_tokens", max_tokens), ("parallel", parallel)):
            if value < 1:
                raise ValueError(f"LocalModel: {name} is {value}: give a number of at least 1")

        if not (0 <= temperature < math.inf):
            raise ValueError(f"LocalModel: temperature is {temperature}: give 0 or more")

        self._file = _file_of(model_id)
        self._n_ctx = n_ctx
        self._threads = threads
        self._parallel = parallel
        self._check_memory = check_memory
        self._sampling: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        if seed is not None:
            self._sampling["seed"] = seed

        self._header: Header | None = None
        self._renderer = Renderer()
        self._engine: Engine | None = None

    @property
    def model_id(self) -> str:
        """The catalog's name or the file's path."""
        return str(self._file) if isinstance(self._file, Path) else self._file.name

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer have together."""
        header = self._header
        if header is None and (path := self._present()) is not None:
            header = self._read(path)

        wanted = -(-self._n_ctx // _CONTEXT_STEP) * _CONTEXT_STEP
        trained = header.trained_context if header else None
        return min(wanted, trained) if trained else wanted

    def load(self, stopped: Stopped = never) -> None:
        """Fetches and loads the model now, blocking; otherwise the first request does it.

        Raises:
            LocalModelError: It cannot be fetched or loaded.
        """
        self._ready(stopped)

    def count_tokens(self, request: ModelRequest) -> int:
        """The exact number of tokens of the request's prompt, by the model's own tokenizer; loads the model first."""
        engine = self._ready()
        return engine.count(self._renderer.chat(request))

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer to one request.

        The text of an answer and the arguments of a tool call come as the model writes them. Closing or cancelling
        the iterator returns at once and ends the generation at its next token, or within 64 tokens of a prompt.

        Args:
            request: The conversation and the tools on offer.

        Yields:
            The stream's events, ending in `messageStop` and `metadata`.

        Raises:
            LocalModelError: The model cannot be fetched or loaded.
            SchemaRefusedError: A tool's or the output's schema cannot be used.
            ContextWindowOverflowException: The request does not fit into the model's window.
        """
        schema = reply_schema(request.tool_specs, request.tool_choice, request.output_schema)
        decoder = ReplyDecoder(raw_answer=request.output_schema is not None) if request.tool_specs else None
        writer = EventWriter(decoder)
        started = time.monotonic()

        def work(emit: Emit[Chunk], stopped: Callable[[], bool]) -> None:
            engine = self._ready(stopped)
            if not stopped():
                engine.chat(self._body(request, schema), emit, stopped)

        yield writer.start()
        async with aclosing(from_thread(work, "ropewalk-local")) as chunks:  # type: ignore[type-var]
            try:
                async for chunk in chunks:
                    for event in writer.chunk(chunk):
                        yield event
            except ValueError as error:
                refused = refusal(str(error), request.tool_specs, request.tool_choice)
                if refused is None and isinstance(error, ModelError):
                    raise

                raise refused or ModelError(f"The local model's runtime refuses the request: {error}") from error

        for event in writer.end(round((time.monotonic() - started) * 1000)):
            yield event

    def _body(self, request: ModelRequest, schema: dict[str, Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self._sampling,
            "messages": self._renderer.chat(request),
            "cache_prompt": True,
            "stream_options": {"include_usage": True},
        }
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}

        return body

    # -- file and engine -----------------------------------------------------------------------------------------

    def _present(self) -> Path | None:
        path = self._file if isinstance(self._file, Path) else fetch.path_of(self._file)
        return path if path.is_file() else None

    def _read(self, path: Path) -> Header:
        self._header = read_header(path)
        self._renderer = Renderer(self._header.special_tokens)
        return self._header

    def _ready(self, stopped: Stopped = never) -> Engine:
        """The engine, with everything that has to happen before there is one."""
        engine = self._engine
        if engine is None or not engine.usable:
            path = self._file if isinstance(self._file, Path) else fetch.ensure(self._file, stopped)
            header = self._read(path)
            settings = EngineSettings(self.context_window, self._parallel, self._threads)
            engine = self._engine = open_engine(header, settings, check=self._check_memory, stopped=stopped)

        return engine


def _file_of(model_id: str | Path) -> Path | catalog.ModelFile:
    """A path, when it looks like one; a file that is missing is reported when it is opened."""
    if isinstance(model_id, Path):
        return model_id.expanduser()

    if model_id.lower().endswith(".gguf") or "/" in model_id or "\\" in model_id:
        return Path(model_id).expanduser()

    return catalog.find(model_id)
