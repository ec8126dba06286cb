"""What the specifications say about each hook, and how an implementation's arguments are bound to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from types import FunctionType
from typing import Any, Final

from ropewalk.markers import PROJECT
from ropewalk.specs import SPECS

Call = Callable[..., Any]
"""Takes (plugin, *all arguments of the hook in the specification's order)."""

SPEC_MARK: Final = f"{PROJECT}_spec"
IMPL_MARK: Final = f"{PROJECT}_impl"
"""The attributes in which pluggy's markers leave their options (a test holds pluggy to it)."""


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One hook as specified.

    Attributes:
        name: The hook's name.
        arguments: Names of its arguments, in order, without `self`.
        is_async: Whether it is awaited.
        is_chain: Whether implementations wrap a step of the kernel (they take `call_next`).
    """

    name: str
    arguments: tuple[str, ...]
    is_async: bool
    is_chain: bool

    @property
    def example(self) -> str:
        """How an implementation of this hook starts."""
        prefix = "async def" if self.is_async else "def"
        return f"{prefix} {self.name}(self, {', '.join(self.arguments)})".replace(", )", ")")


def _read_specs() -> dict[str, HookSpec]:
    hooks: dict[str, HookSpec] = {}
    for group in SPECS:
        for name, function in vars(group).items():
            if isinstance(function, FunctionType) and hasattr(function, SPEC_MARK):
                code = function.__code__
                arguments = code.co_varnames[1 : code.co_argcount]
                hooks[name] = HookSpec(name, arguments, inspect.iscoroutinefunction(function), "call_next" in arguments)
    return hooks


HOOKS: Final[Mapping[str, HookSpec]] = _read_specs()
"""Every hook by name."""


def bind(function: Call, names: tuple[str, ...], hook: HookSpec) -> Call:
    """Makes a callable that takes all arguments of a hook and hands on those that an implementation names.

    pluggy 1.7 passes arguments that have defaults and 1.6 silently does not, so the binding is the kernel's own.

    Args:
        function: The implementation, unbound.
        names: Its parameters without `self`, all of them arguments of the hook.
        hook: The specification.

    Returns:
        The function itself when it takes exactly the hook's arguments in order.
    """
    if names == hook.arguments:
        return function

    positions = [hook.arguments.index(name) for name in names]
    if not positions:
        return lambda plugin, *_arguments: function(plugin)

    if len(positions) == 1:
        only = positions[0]
        return lambda plugin, *arguments: function(plugin, arguments[only])

    pick = itemgetter(*positions)
    return lambda plugin, *arguments: function(plugin, *pick(arguments))


def mark_of(value: object) -> dict[str, Any] | None:
    """The options that `@hookimpl` left on a value of a class body, or None.

    Looked up in the value's own dictionary: objects that answer to every attribute are no hooks.
    """
    for holder in (value, getattr(value, "__func__", None)):  # static and class methods hold a function
        options = getattr(holder, "__dict__", {}).get(IMPL_MARK)
        if isinstance(options, dict):
            return options

    return None


def where(function: object) -> str:
    """File and line of a function's definition, as far as they are known."""
    code = code_of(function)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "unknown place"


def code_of(function: object) -> Any:
    """The code object that runs when a function, method, partial or callable object is called; None for C code."""
    function = getattr(function, "func", function)  # functools.partial
    function = inspect.unwrap(getattr(function, "__func__", function))  # type: ignore[arg-type]
    code = getattr(function, "__code__", None)
    return code if code is not None else getattr(vars(type(function)).get("__call__"), "__code__", None)
