"""From a text that says where sessions are kept to the store, through the plugin that owns `session.<scheme>`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.activation import owner_of, owners_of, require_owner
from ropewalk.kits.hooks.gathering import Gathering
from ropewalk.kits.hooks.parameters import PARAMETERS
from ropewalk.kits.sessions.errors import SessionException
from ropewalk.kits.sessions.store import LogStore

VARIABLE: Final = "ROPEWALK_STORE"
"""Environment variable that says where sessions are kept when nothing else does."""

_URL: Final = re.compile(r"([a-z][a-z0-9-]*)(?:\+[a-z0-9.-]+)?://", re.IGNORECASE)
_FOLDERS: Final = "file"


def store_of(spec: str | None = None) -> LogStore:
    """The store that a text stands for.

    The plugin that owns `session.<scheme>` (group `ropewalk.parameters`) makes it: its method `open_store` gets the
    text, or None for the store of its options.

    Args:
        spec: A folder, a URL such as `sqlite:///sessions.db` or `s3://bucket/prefix`, or None for `ROPEWALK_STORE`, or
            what the plugin of folders keeps sessions in.

    Raises:
        MissingPluginError: The plugin is not installed, or switched off.
        PluginError: No plugin is known for the scheme, or the plugin that owns it makes no stores.
        SessionException: The text is blank, or not what the plugin understands.
    """
    named = "store"
    if spec is None and os.environ.get(VARIABLE):
        spec, named = os.environ[VARIABLE], VARIABLE

    if spec is not None and not spec.strip():
        raise SessionException(f"{named}={spec!r}: give a folder, or a URL such as sqlite:///sessions.db")

    found = _URL.match(spec or "")
    if found is None and spec is not None and _names_scheme(spec):
        scheme = spec.partition(":")[0].lower()
        raise SessionException(f"{named}={spec!r} is neither a folder nor a URL: write {scheme}://..., or ./{spec}")

    scheme = found[1].lower() if found else _FOLDERS
    wanted = "a store of sessions" if spec is None else f"{named}={spec!r}"
    if found:
        wanted = f"a store of sessions at {scheme}://..."  # a password may be in the rest
    owner, gathering = require_owner(f"session.{scheme}", wanted), Gathering.from_environment()
    owner = next((each for each in owners_of(f"session.{scheme}") if each not in gathering.off), owner)
    opening: Any = getattr(gathering.named(owner, wanted), "open_store", None)
    if opening is None:
        raise PluginError(f"{wanted}: plugin {owner!r} owns session.{scheme} and has no open_store(spec): give it one")

    store = opening(spec)
    if not isinstance(store, LogStore):
        raise PluginError(f"{wanted}: plugin {owner!r} made a {type(store).__name__}, which is no store: see LogStore")

    return store


def _names_scheme(spec: str) -> bool:
    """Whether a text begins as a URL of a store does, and is none: a folder of that name is not what was meant."""
    scheme, colon, _ = spec.partition(":")
    parameter = f"session.{scheme.lower()}"
    return bool(colon) and (parameter in PARAMETERS or owner_of(parameter) is not None)


@contextmanager
def opened(spec: str | None = None) -> Iterator[LogStore]:
    """The store that a text stands for, whose connections are closed at the end; see `store_of`."""
    store = store_of(spec)
    try:
        yield store
    finally:
        close: Any = getattr(store, "close", None)
        if close is not None:
            close()
