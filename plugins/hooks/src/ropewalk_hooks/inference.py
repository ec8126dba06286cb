"""Which events a callback is for: from what was given, or from the annotation of its first parameter."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from ropewalk.kits.lifecycle import EVENTS, HookEvent
from ropewalk_hooks.errors import HookError

_ALL: Final[tuple[type[HookEvent], ...]] = (HookEvent, *EVENTS)
_KNOWN: Final[dict[str, type[HookEvent]]] = {each.__name__: each for each in _ALL}
"""So that an annotation whose name is imported for type checkers only is understood."""


def event_types(callback: Callable[..., Any], given: Any) -> tuple[type[HookEvent], ...]:
    """The event classes that a callback is registered for, without duplicates.

    Args:
        callback: What is called.
        given: A class, a list of classes, or None to look at the callback.

    Raises:
        HookError: The callback cannot be called with an event, or one of the types is no event, or there is none.
    """
    _check_callable(callback)
    if given is None:
        return tuple(dict.fromkeys(_inferred(callback)))

    listed = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    if not listed:
        raise HookError(f"the list of event types for {shown(callback)} is empty: name at least one event class")

    for each in listed:
        _check_type(each, callback)

    return tuple(dict.fromkeys(listed))


def is_async(callback: Callable[..., Any]) -> bool:
    """Whether what the callback returns must be awaited, as far as its definition tells."""
    while isinstance(callback, functools.partial):
        callback = callback.func

    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None))  # noqa: B004 - the method is looked at, not whether there is one


def shown(callback: object) -> str:
    """A callback's name for messages."""
    while isinstance(callback, functools.partial):
        callback = callback.func

    return f"the callback {getattr(callback, '__qualname__', None) or repr(callback)}"


def _check_callable(callback: Any) -> None:
    if not callable(callback) or isinstance(callback, type):
        raise HookError(f"{callback!r:.80} is no callback: write a function, def log(event): ...")

    signature = _signature(callback)
    if signature is None:
        return

    try:
        signature.bind(object())
    except TypeError as error:
        raise HookError(
            f"{shown(callback)} cannot be called with an event ({error}): give it exactly one required parameter"
        ) from None


def _signature(callback: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(callback)
    except (TypeError, ValueError):  # C code often has none
        return None


def _inferred(callback: Callable[..., Any]) -> list[type[HookEvent]]:
    signature = _signature(callback)
    parameter = next(iter(signature.parameters.values()), None) if signature is not None else None
    if parameter is None or parameter.annotation is inspect.Parameter.empty:
        raise HookError(
            f"{shown(callback)} does not say which events it is for: annotate its parameter "
            "(event: BeforeModelCallEvent), or pass the event type"
        )

    annotation = _resolved(parameter.annotation, callback)
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    members = list(typing.get_args(annotation)) if is_union else [annotation]
    for each in members:
        _check_type(each, callback)

    return members


def _resolved(annotation: Any, callback: Callable[..., Any]) -> Any:
    """The object behind an annotation, which is a string in modules that import annotations from the future."""
    holder = SimpleNamespace(__annotations__={"event": annotation})
    names = {**_KNOWN, **_globals_of(callback)}
    try:
        return typing.get_type_hints(holder, globalns=names)["event"]
    except Exception as error:
        raise HookError(
            f"{shown(callback)} is annotated with {annotation!r}, which cannot be found out ({error}): "
            "pass the event type"
        ) from error


def _globals_of(callback: Any) -> dict[str, Any]:
    while isinstance(callback, functools.partial):
        callback = callback.func

    function = inspect.unwrap(getattr(callback, "__func__", callback))
    if not hasattr(function, "__globals__"):
        function = getattr(type(callback), "__call__", None)  # noqa: B004 - an object that can be called

    names: dict[str, Any] = getattr(function, "__globals__", {})
    return names


def _check_type(value: Any, callback: Callable[..., Any]) -> None:
    if not isinstance(value, type) or not issubclass(value, HookEvent):
        raise HookError(
            f"{shown(callback)} is to be called for {getattr(value, '__name__', value)!r:.80}, which is no event: "
            "use classes such as BeforeModelCallEvent"
        )

    if value is HookEvent:
        raise HookError(
            f"{shown(callback)} is to be called for HookEvent, the base class, which never happens: callbacks are "
            "chosen by the exact class, so name the events, such as [BeforeModelCallEvent, AfterModelCallEvent]"
        )
