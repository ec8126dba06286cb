"""Loads LiteLLM when it is first needed: it costs seconds and 200 MB."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Final

from ropewalk.errors import MissingPluginError
from ropewalk_litellm import background

_log = logging.getLogger("ropewalk.litellm")
_LOCAL_DATA: Final = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS")
_REPEATED: Final = "REPEATED_STREAMING_CHUNK_LIMIT"
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
# What it silences itself when it is imported: pydantic says it of LiteLLM's classes, but not in LiteLLM's name.
_ITS_WARNINGS: Final = (
    ".*conflict with protected namespace",
    ".*Accessing the.*attribute on the instance is deprecated",
    ".*`ReadOnly` qualifier",
)
_guard = threading.Lock()
_ready: list[ModuleType] = []


def litellm() -> Any:
    """The module, imported and quiet.

    When the program has imported it before, its settings are left alone. Otherwise nothing is fetched from the network
    (tables of prices and of headers come with the package), nothing is reported home or printed, and its log is
    silent; `LITELLM_LOG` turns the log on again.

    Raises:
        MissingPluginError: It is not installed.
    """
    if _ready:
        _ignore_its_warnings()
        return _ready[0]

    with _guard:
        if not _ready:
            known = "litellm" in sys.modules
            with _local_data():
                module = _imported()
                if not known:
                    _quieten(module)

            atexit.register(_at_exit)  # after the module's own, so before it: ours knows the clients' loop
            _ready.append(module)

    _ignore_its_warnings()
    return _ready[0]


def loaded() -> Any:
    """The module if it has been loaded, else None."""
    return _ready[0] if _ready else None


@contextmanager
def _local_data() -> Iterator[None]:
    """Lets LiteLLM read its own copies of its tables while it loads; what the user has set stays as it is."""
    absent = [name for name in _LOCAL_DATA if name not in os.environ]
    os.environ.update(dict.fromkeys(absent, "True"))
    try:
        yield
    finally:
        for name in absent:
            os.environ.pop(name, None)


def _imported() -> ModuleType:
    try:
        module = importlib.import_module("litellm")
    except ModuleNotFoundError as error:
        if error.name != "litellm":
            raise

        raise MissingPluginError("model='litellm:...'", "ropewalk-litellm", hint="pip install litellm") from error

    with suppress(ImportError, AttributeError):  # of some versions only: they would fetch it at the first call
        headers = importlib.import_module("litellm.anthropic_beta_headers_manager")
        headers._load_beta_headers_config()  # noqa: SLF001 - there is no other way to have it read now

    return module


def _quieten(module: Any) -> None:
    module.telemetry = False
    module.suppress_debug_info = True  # it prints advice at each error
    if _REPEATED not in os.environ:
        # It takes a long rule or a wide table for a loop, and ends the answer. Loops end at the limit of tokens.
        setattr(module, _REPEATED, sys.maxsize)

    if not os.environ.get("LITELLM_LOG"):
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # every failure is raised; nothing is lost


def _ignore_its_warnings() -> None:
    """Warnings about LiteLLM's own code are not the user's to mend, and as errors they would end a stream.

    At every call: whoever collects warnings, as pytest does, puts all filters back afterwards, LiteLLM's own too.
    """
    warnings.filterwarnings("ignore", module=r"litellm(\.|$)")
    for message in _ITS_WARNINGS:
        warnings.filterwarnings("ignore", message=message)


def release_clients() -> None:
    """Closes the connections that LiteLLM keeps open between calls. A call that is under way fails."""
    module = loaded()
    if module is None:
        return

    try:
        background.run_and_wait(lambda: _close_clients(module))
    except Exception:  # noqa: BLE001 - closing is a courtesy
        _log.debug("LiteLLM's clients could not be closed", exc_info=True)


async def _close_clients(module: Any) -> None:
    cache = getattr(module, "in_memory_llm_clients_cache", None)
    close = getattr(module, "close_litellm_async_clients", None)
    if close is not None:
        await close()

    flush = getattr(cache, "flush_cache", None)
    if flush is not None:
        flush()


def _at_exit() -> None:
    release_clients()
    background.stop()


def _forget_clients() -> None:
    """After a fork: connections of the parent must not be used."""
    global _guard  # noqa: PLW0603 - the lock may have been held by a thread that does not exist here
    _guard = threading.Lock()
    flush = getattr(getattr(loaded(), "in_memory_llm_clients_cache", None), "flush_cache", None)
    if flush is not None:
        flush()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_clients)
