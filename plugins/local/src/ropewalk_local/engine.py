"""The loaded model: llama.cpp's server in this process, one per file and settings, shared by all agents."""

from __future__ import annotations

import ctypes
import http.client
import json
import logging
import os
import platform
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ropewalk.errors import ContextWindowOverflowException, ModelError
from ropewalk_local.cache import Stopped, never
from ropewalk_local.errors import EngineClosedError, LoadError, UnsupportedPlatformError
from ropewalk_local.memory import check_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ropewalk_local.gguf import Header

_log = logging.getLogger("ropewalk.local")
# Prompt tokens between two looks at the cancel flag: with 1.5B parameters on one thread, below two seconds.
_BATCH: Final = 64
_POLL_SECONDS: Final = 0.05
_READ_BLOCK: Final = 1 << 23
_HTTP_SECONDS: Final = 60
_HTTP_OK: Final = 200

Chunk = dict[str, Any]


class EngineSettings(NamedTuple):
    """What makes two engines of one file different.

    Attributes:
        n_ctx: Tokens of context of one conversation.
        parallel: Conversations at once; each has its own context.
        threads: Threads that compute.
    """

    n_ctx: int
    parallel: int
    threads: int


def import_runtime() -> Any:
    """Imports xllamacpp.

    Raises:
        UnsupportedPlatformError: It is not installed or does not load here.
    """
    try:
        import xllamacpp
    except (ImportError, OSError) as error:
        where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
        raise UnsupportedPlatformError(where, str(error)) from error

    return xllamacpp


class Engine:
    """One model in memory. Use `open_engine`; all methods may be called from any thread.

    Args:
        header: The file.
        settings: How to load it.
    """

    def __init__(self, header: Header, settings: EngineSettings) -> None:
        self.header = header
        self.settings = settings
        self._pid = os.getpid()
        self._slots = threading.BoundedSemaphore(settings.parallel)
        self._api_key = secrets.token_urlsafe(32)
        self._server = self._load(import_runtime())

    def _load(self, runtime: Any) -> Any:
        params = runtime.CommonParams()
        params.model.path = str(self.header.path)
        params.n_ctx = self.settings.n_ctx * self.settings.parallel
        params.n_parallel = self.settings.parallel
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.settings.threads
        params.use_jinja = True
        params.warmup = False
        params.fit_params = False  # measured: trying out what fits doubles the time to load
        params.cache_ram_mib = 0
        params.verbosity = -1
        # The runtime always listens on a port. Nobody but this object can use it.
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [self._api_key]
        params.cors_origins = ""
        params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
        started = time.monotonic()
        try:
            server = runtime.Server(params)
        except Exception as error:
            raise LoadError(self.header.path, str(error) or type(error).__name__) from error

        _log.info("loaded %s in %.1f s", self.header.path.name, time.monotonic() - started)
        return server

    @property
    def usable(self) -> bool:
        """False after a fork: the computing threads stayed in the parent."""
        return self._pid == os.getpid()

    @property
    def address(self) -> str:
        """`host:port` that the runtime listens on; without the engine's random key it answers nothing but health."""
        return str(self._server.listening_address).removeprefix("http://")

    def abandon(self) -> None:
        """Never frees the runtime's object: in a forked child that would wait for threads that are not there."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))

    @contextmanager
    def _slot(self, stopped: Stopped) -> Iterator[bool]:
        """Waits for a free slot here rather than inside the runtime, where a waiting request cannot be cancelled."""
        while not (got := self._slots.acquire(timeout=_POLL_SECONDS)):
            if stopped():
                break

        try:
            yield got
        finally:
            if got:
                self._slots.release()

    def chat(self, body: dict[str, Any], on_chunk: Callable[[Chunk], bool], stopped: Stopped = never) -> None:
        """Generates one answer; blocks until it is done.

        Args:
            body: A chat completion request.
            on_chunk: Gets each chunk; True ends the generation.
            stopped: Asked while waiting for a slot.

        Raises:
            ContextWindowOverflowException: The prompt does not fit.
            ModelError: The runtime refuses the request.
        """
        if not self.usable:
            raise EngineClosedError(self.header.path)

        failure: list[Exception] = []

        def take(chunk: Any) -> bool:
            # The runtime swallows what a callback raises.
            try:
                return self._take(chunk, on_chunk)
            except Exception as error:  # noqa: BLE001 - raised below
                failure.append(error)
                return True

        with self._slot(stopped) as got:
            if got:
                answer = self._server.handle_chat_completions({**body, "stream": True, "return_progress": True}, take)
                if isinstance(answer, dict) and "error" in answer and not failure:
                    raise _error_of(answer["error"])

        if failure:
            raise failure[0]

    def _take(self, chunk: Chunk, on_chunk: Callable[[Chunk], bool]) -> bool:
        if "error" in chunk:
            raise _error_of(chunk["error"])

        return on_chunk(chunk)

    def count(self, messages: list[dict[str, str]]) -> int:
        """Tokens of the messages as the model will see them, the template's own included."""
        return int(self._post("/v1/chat/completions/input_tokens", {"messages": messages})["input_tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=_HTTP_SECONDS)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._api_key}"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()

        if response.status != _HTTP_OK:
            raise _error_of(answer.get("error", answer))

        return answer


def _error_of(error: Any) -> ModelError:
    """The runtime's error object as one of ours."""
    details = error if isinstance(error, dict) else {"message": str(error)}
    message = str(details.get("message", details))
    if details.get("type") == "exceed_context_size_error":
        asked, window = details.get("n_prompt_tokens", "?"), details.get("n_ctx", "?")
        return ContextWindowOverflowException(
            f"The request has {asked} tokens and the local model's window {window}: shorten the conversation, or make "
            "the LocalModel with a larger n_ctx."
        )

    return ModelError(f"The local model's runtime failed: {message}")


# -- one engine per file and settings ----------------------------------------------------------------------------

_Key = tuple[str, int, int, EngineSettings]


class _Registry:
    """The engines of this process. An engine lives as long as a model uses it; the last one opened stays warm."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.used = False
        self.forked = False
        self.engines: weakref.WeakValueDictionary[_Key, Engine] = weakref.WeakValueDictionary()
        self.last: Engine | None = None


_registry = _Registry()


def _after_fork() -> None:
    global _registry  # noqa: PLW0603 - the child starts anew; its lock may have been held by a thread of the parent
    for engine in list(_registry.engines.values()):
        engine.abandon()

    used = _registry.used
    _registry = _Registry()
    if used:
        _registry.used = _registry.forked = True
        _skip_static_destructors()


def _skip_static_destructors() -> None:
    """Lets a forked child end: llama.cpp's static objects would wait for a logging thread that stayed in the parent.

    glibc runs exit handlers last in, first out, so this one comes before them, when Python is already finalized.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)  # noqa: SLF001 - the C function of that name


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def open_engine(header: Header, settings: EngineSettings, *, check: bool = True, stopped: Stopped = never) -> Engine:
    """The engine of a file with these settings, loaded when no agent of this process did it before.

    The runtime holds the interpreter's lock while it loads (one to two seconds for 1 GB), so the file is read
    into the system's cache before, which does not.

    Args:
        header: The file.
        settings: How to load it.
        check: Refuse to load what does not fit into the memory.
        stopped: Asked while the file is read.

    Raises:
        NotEnoughMemoryError: It does not fit.
        LoadError: llama.cpp refuses the file.
        UnsupportedPlatformError: The runtime is not there.
    """
    facts = header.path.stat()
    key: _Key = (str(header.path.resolve()), facts.st_size, facts.st_mtime_ns, settings)
    registry = _registry
    with registry.lock:
        engine = registry.engines.get(key)
        if engine is None:
            import_runtime()
            if check:
                check_memory(header, settings.n_ctx * settings.parallel)

            _warm(header.path, stopped)
            registry.used = True
            engine = Engine(header, settings)
            registry.engines[key] = engine
            if registry.forked:
                engine.abandon()

        registry.last = engine

    return engine


def _warm(path: Path, stopped: Stopped) -> None:
    with path.open("rb", buffering=0) as stream:
        while stream.read(_READ_BLOCK) and not stopped():
            pass


def release_engines() -> None:
    """Frees the memory of the engine that was kept warm; engines in use go when their models do."""
    _registry.last = None
