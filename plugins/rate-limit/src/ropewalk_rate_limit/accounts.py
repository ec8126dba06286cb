"""Which account a model has: one per process, and per clock."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakKeyDictionary

from ropewalk.kits.aio.seam import Seam, current_seam
from ropewalk_rate_limit.account import Account


class _Accounts:
    """The accounts of one clock: under another one, the minutes are others."""

    __slots__ = ("by_id", "by_object")

    def __init__(self) -> None:
        self.by_id: dict[str, Account] = {}
        self.by_object: WeakKeyDictionary[Any, Account] = WeakKeyDictionary()


_lock = threading.Lock()
_of_clock: WeakKeyDictionary[Seam, _Accounts] = WeakKeyDictionary()


def id_of(model: Any) -> str | None:
    """The id of a model, if it has one."""
    config = getattr(model, "config", None)
    known = getattr(model, "model_id", None) or (config.get("model_id") if isinstance(config, dict) else None)
    return str(known) if known else None


def account_of(model: Any) -> Account:
    """The account that all agents share which call this model."""
    name = id_of(model)
    with _lock:
        accounts = _of_clock.setdefault(current_seam(), _Accounts())
        if name is not None:
            return accounts.by_id.setdefault(name, Account())

        try:
            return accounts.by_object.setdefault(model, Account())
        except TypeError:  # it cannot be referred to weakly, or has no hash
            return accounts.by_id.setdefault(f"<{type(model).__qualname__} at {id(model)}>", Account())


def _forget() -> None:
    """After a fork: whoever waits or holds a lock is in the parent, and calls of the child would wait for ever."""
    global _lock  # noqa: PLW0603 - the lock may have been held by a thread that does not exist here
    _lock = threading.Lock()
    _of_clock.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
