"""What an object holds, as a value to compare before and after."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_OPAQUE = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, classmethod, staticmethod, property)
_WEAK = (WeakKeyDictionary, WeakValueDictionary, WeakSet)
_DEPTH = 6


def snapshot(value: Any, *, without: tuple[str, ...] = ()) -> Any:
    """The attributes of an object and of its class, with all that is in them.

    Functions and classes count by identity. Containers that refer weakly count as empty: they are checked otherwise.

    Args:
        value: The object.
        without: Names of attributes to leave out.
    """
    own = {name: each for name, each in attributes(value).items() if name not in without}
    shared = {
        f"{cls.__qualname__}.{name}": each
        for cls in type(value).__mro__[:-1]
        for name, each in vars(cls).items()
        if not name.startswith("__") and name != "_abc_impl" and not isinstance(each, cached_property)
    }
    return _plain({**shared, **own}, _DEPTH)


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an instance, in its dictionary or its slots."""
    slots = [name for cls in type(value).__mro__ for name in _names(getattr(cls, "__slots__", ()))]
    held = {name: getattr(value, name) for name in slots if not name.startswith("__") and hasattr(value, name)}
    return {**held, **getattr(value, "__dict__", {})}


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, _PLAIN):
        return value

    kind = type(value).__name__
    if isinstance(value, _WEAK):
        return kind

    if isinstance(value, _OPAQUE) or depth == 0:
        return kind, id(value)

    return kind, _inside(value, depth)


def _inside(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return [(repr(key), _plain(each, depth - 1)) for key, each in value.items()]

    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))

    if isinstance(value, list | tuple):
        return [_plain(each, depth - 1) for each in value]

    inside = {name: _plain(each, depth - 1) for name, each in attributes(value).items()}
    return id(value), inside or _shown(value)


def _shown(value: Any) -> str:
    """How it shows itself: a counter, a deque or a lock says there where it stands."""
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - an object's own code
        return type(error).__name__
