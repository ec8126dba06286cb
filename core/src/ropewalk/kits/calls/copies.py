"""Copies of plain values that share nothing with what they were made from, and cannot do anything of their own."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any


def plain_copy(value: Any) -> Any:
    """A copy down to the leaves: dicts, lists and texts of derived types become plain ones.

    A derived dict could answer differently each time it is read, and say of itself that it equals anything. What cannot
    be copied (a lock, an open file) is taken over as it is: it is no value that one could look at.
    """
    return _copy(value, {})


def _copy(value: Any, known: dict[int, Any]) -> Any:  # noqa: PLR0911 - one rule per type
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or kind is bytes or value is None:
        return value

    if id(value) in known:
        return known[id(value)]

    if isinstance(value, dict):
        fresh: dict[Any, Any] = {}
        known[id(value)] = fresh
        for key, item in list(dict.items(value)):
            fresh[_copy(key, known)] = _copy(item, known)

        return fresh

    if isinstance(value, list):
        items: list[Any] = []
        known[id(value)] = items
        items.extend(_copy(item, known) for item in list.__iter__(value))
        return items

    if kind is tuple:
        return tuple(_copy(item, known) for item in value)

    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)

    return _other(value, known)


def _other(value: Any, known: dict[int, Any]) -> Any:
    try:
        fresh = copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - whatever its own methods raise
        fresh = value

    known[id(value)] = fresh = value if fresh is None else fresh
    return fresh
