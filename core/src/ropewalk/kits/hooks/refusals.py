"""What is refused when a plugin is registered. Each refusal names plugin, hook, definition and fix."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from ropewalk.errors import PluginError
from ropewalk.kits.calls.edits import CONTEXT_REASONS
from ropewalk.kits.hooks.signatures import HOOKS, SPEC_MARK, Call, HookSpec, bind, mark_of, where
from ropewalk.markers import API_VERSION

TIERS: Final = ("policy", "normal", "observer")
"""In calling order."""

Refuse: TypeAlias = Callable[..., PluginError]
"""`refusal` with the plugin, and the definition in question, filled in."""

OBSERVABLE: Final = frozenset(
    {"init_agent", "on_agent_ready", "on_close", "on_delta", "on_event", "on_hook_call", "provide_commands"}
)
"""What a plugin of the observer tier may implement: nothing in which an answer or an error could change a run."""

_carriers: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Implementation:
    """One method of a plugin class that implements a hook, checked.

    Attributes:
        attribute: The method's name in the class.
        hook: The hook it implements.
        function: The method, unbound, with pluggy's mark on it.
        call: Takes (plugin, *all arguments of the hook).
    """

    attribute: str
    hook: HookSpec
    function: FunctionType
    call: Call


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as `did you mean 'retry'?`, or an empty text."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def refusal(plugin: type, what: str, fix: str, *, name: object = None, function: object = None) -> PluginError:
    """Writes the message of a refusal from its facts."""
    label = name if isinstance(name, str) else getattr(plugin, "name", None)
    known = f"plugin {label!r}" if isinstance(label, str) else "a plugin without a name"
    place = f" [{where(function)}]" if function is not None else ""
    return PluginError(f"{known} ({plugin.__module__}.{plugin.__qualname__}): {what}{place}. To fix it: {fix}")


# -- the plugin object -------------------------------------------------------------------------------------------


def check_plugin(plugin: object) -> str:
    """Refuses what cannot be a plugin instance at all, and what an instance adds to its class.

    Returns:
        The plugin's name.

    Raises:
        PluginError: It is a module or a class, has no hooks, sets hooks on the instance, or its order or its
            context_reasons are of another kind.
    """
    if isinstance(plugin, ModuleType):
        raise PluginError(
            f"module {plugin.__name__} was given as a plugin: put the hooks into a class with a `name` and give that"
        )

    cls = type(plugin)
    if isinstance(plugin, type) or not carries_hooks(cls):
        raise PluginError(
            f"{plugin!r} is no plugin: a plugin is an object whose class has a `name` and @hookimpl methods"
        )

    name = check_identity(cls, getattr(plugin, "name", None), getattr(cls, "tier", "normal"))
    order = getattr(plugin, "order", 0)
    if isinstance(order, bool) or not isinstance(order, int | float) or order != order:  # noqa: PLR0124 - NaN
        raise refusal(cls, f"its order {order!r} is no number", "order = 0, or less to be called before others")

    reasons = getattr(plugin, "context_reasons", None)
    if reasons is not None and not (
        isinstance(reasons, set | frozenset | list | tuple) and CONTEXT_REASONS.issuperset(map(str, reasons))
    ):
        raise refusal(
            cls,
            f"its context_reasons are {reasons!r}",
            f"name some of {', '.join(sorted(CONTEXT_REASONS))}, or leave it out to be asked for all",
        )

    for key, value in getattr(plugin, "__dict__", {}).items():
        if callable(value) and (key in HOOKS or (isinstance(value, FunctionType) and mark_of(value) is not None)):
            raise refusal(
                cls, f"{key} is set on the instance, where hooks are not seen", "define it as a method", function=value
            )

    return name


def check_identity(cls: type, name: object, tier: object) -> str:
    """Checks name and tier of a plugin, and returns the name.

    Raises:
        PluginError: The name is missing or has characters that a list of names cannot have, or there is no such tier.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "none":
        raise refusal(cls, f"its name is {name!r}", "name = \"mine\", made of letters, digits, '-' and '_'")

    if tier not in TIERS:
        raise refusal(cls, f"its tier is {tier!r}", f"use one of {', '.join(map(repr, TIERS))}", name=name)

    return name


def carries_hooks(cls: type) -> bool:
    """Whether a class has a method marked with `@hookimpl`, so that its instances are plugins."""
    if cls not in _carriers:
        _carriers[cls] = any(mark_of(value) is not None for each in cls.__mro__[:-1] for value in vars(each).values())

    return _carriers[cls]


def check_class(cls: type, name: object, tier: object) -> list[Implementation]:
    """Checks a plugin class and finds its hook implementations.

    Args:
        cls: The class.
        name: The plugin's name, as its instance has it.
        tier: The plugin's tier.

    Returns:
        One entry per implementation, in the order of definition.

    Raises:
        PluginError: Something about the class does not fit.
    """
    refuse = partial(refusal, cls, name=check_identity(cls, name, tier))
    _check_api(getattr(cls, "api", API_VERSION), refuse)
    definitions: dict[str, list[object]] = {}
    for klass in cls.__mro__[:-1]:
        for attribute, value in vars(klass).items():
            definitions.setdefault(attribute, []).append(value)

    checked = (
        _check_attribute(attribute, values, partial(refuse, function=values[0]))
        for attribute, values in definitions.items()
    )
    found = [implementation for implementation in checked if implementation is not None]
    for each in found if tier == "observer" else ():
        if each.hook.name not in OBSERVABLE:
            what = f"an observer cannot implement {each.hook.name}, only {', '.join(sorted(OBSERVABLE))}"
            raise refuse(what, 'tier = "normal"', function=each.function)

    return found


def _check_api(declared: Any, refuse: Refuse) -> None:
    low, high = declared if isinstance(declared, tuple) and len(declared) == 2 else (declared, declared)  # noqa: PLR2004
    if not all(isinstance(bound, int) and not isinstance(bound, bool) for bound in (low, high)):
        raise refuse(f"its api is {declared!r}", f"api = {API_VERSION}, or a pair (lowest, highest)")

    if not low <= API_VERSION <= high:
        what = f"it is made for hook API {declared!r}, this is {API_VERSION}"
        raise refuse(what, "install versions of the plugin and of ropewalk-core that fit")


# -- one attribute -----------------------------------------------------------------------------------------------


def _check_attribute(attribute: str, values: list[object], refuse: Refuse) -> Implementation | None:
    """Checks one attribute; `values` are its definitions along the class's bases, the one in force first."""
    value = values[0]
    if value is None or SPEC_MARK in getattr(value, "__dict__", {}):  # `on_event = None` switches an inherited hook off
        return None

    options = mark_of(value)
    if options is None:
        _check_unmarked(attribute, values, refuse)
        return None

    if not isinstance(value, FunctionType):
        what = f"{attribute} is marked as a hook and is a {type(value).__name__}"
        raise refuse(what, "hooks are plain methods with `self`")

    wanted = options.get("specname") or attribute
    hook = HOOKS.get(wanted)
    if hook is None:
        if options.get("optionalhook"):
            return None

        fix = f"{did_you_mean(wanted, HOOKS)}the hooks are {', '.join(sorted(HOOKS))}"
        raise refuse(f"there is no hook {wanted!r}", fix)

    _check_kind(hook, value, options, refuse)
    return Implementation(attribute, hook, value, bind(value, _parameters(hook, value, refuse), hook))


def _check_unmarked(attribute: str, values: list[object], refuse: Refuse) -> None:
    value = values[0]
    inherited = any(mark_of(below) is not None for below in values[1:])
    looks_like_one = callable(value) or isinstance(value, staticmethod | classmethod | property)
    if inherited or (attribute in HOOKS and looks_like_one):
        what = "overrides a hook" if inherited else "is named like a hook"
        raise refuse(
            f"{attribute} {what} and is not marked, so it would not be called", "put @hookimpl above it, or rename it"
        )


def _check_kind(hook: HookSpec, function: FunctionType, options: dict[str, Any], refuse: Refuse) -> None:
    if options.get("wrapper") or options.get("hookwrapper"):
        chains = ", ".join(sorted(each.name for each in HOOKS.values() if each.is_chain))
        body = (
            "async def around_tool_call(self, call, call_next): ...; result = await call_next(call); ...; return result"
        )
        raise refuse(f"{hook.name} is a pluggy wrapper", f"wrap with a chain ({chains}): `{body}`")

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(f"{hook.name} yields", f"return its answer: `{hook.example}`")

    is_async = inspect.iscoroutinefunction(function)
    if is_async != hook.is_async:
        what = "is async and the hook is not awaited" if is_async else "is not async and the hook is awaited"
        raise refuse(f"{hook.name} {what}", f"write `{hook.example}`")


def _parameters(hook: HookSpec, function: FunctionType, refuse: Refuse) -> tuple[str, ...]:
    """The names of an implementation's parameters without `self`, all of them arguments of the hook."""
    parameters = list(inspect.signature(function).parameters.values())
    fix = f"take any of ({', '.join(hook.arguments)}) by name: `{hook.example}`"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional or parameters[0].name in hook.arguments:
        raise refuse(f"{hook.name} takes no `self`", fix)

    for each in parameters[1:]:
        if each.kind not in positional:
            kind = each.kind.description.replace("variadic", "star")
            raise refuse(f"{hook.name} has the {kind} parameter {each.name!r}", fix)

        if each.name not in hook.arguments:
            raise refuse(f"{hook.name} has no argument {each.name!r}", did_you_mean(each.name, hook.arguments) + fix)

    return tuple(each.name for each in parameters[1:])
