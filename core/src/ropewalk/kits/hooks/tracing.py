"""The second plan: every link wrapped, for observers that implement `on_hook_call`. Built only when there are some."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import Link, Links, Plan
from ropewalk.kits.hooks.signatures import HOOKS, Call
from ropewalk.kits.json_values import strict_json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of one implementation, after it happened.

    Attributes:
        plugin: The plugin's name.
        hook: The hook's name.
        seconds: How long it took; for a chain, with everything further in.
        before: Digest of the first argument as it was handed in; empty when the hook has none.
        after: Digest of the same argument afterwards, or of what a chain returned.
        error: The name of the exception's type, or None.
    """

    plugin: str
    hook: str
    seconds: float
    before: str
    after: str
    error: str | None

    @property
    def changed(self) -> bool:
        """Whether a link that is no chain wrote to its first argument, which none should."""
        return self.before != self.after and not HOOKS[self.hook].is_chain


def traced(plan: Plan, plugins: tuple[Any, ...]) -> Plan:
    """The plan with every link wrapped, but those of `on_hook_call` itself."""
    observers = plan.on_hook_call
    wrapped: dict[str, Links] = {}
    for each in fields(plan):
        links: Links = getattr(plan, each.name)
        wrapped[each.name] = links if links is observers else tuple(_wrap(link, observers, plugins) for link in links)

    return Plan(**wrapped)


def _wrap(link: Link, observers: Links, plugins: tuple[Any, ...]) -> Link:
    hook = HOOKS[link.hook]

    def report(began: float, before: str, after: str, arguments: tuple[Any, ...], error: BaseException | None) -> None:
        agent = arguments[-1] if "agent" in hook.arguments else None  # always the last argument of a specification
        name = type(error).__name__ if error is not None else None
        call = HookCall(link.plugin_name, link.hook, time.perf_counter() - began, before, after, name)
        verbs.call(observers, plugins, (call, agent))

    wrap = _wrapped_async if hook.is_async else _wrapped_sync
    return Link(
        wrap(link.call, hook.is_chain, report), link.index, link.function, link.plugin_name, link.hook, link.tier
    )


def _wrapped_sync(call: Call, _is_chain: bool, report: Callable[..., None]) -> Call:
    def traced_call(plugin: Any, *arguments: Any) -> Any:
        began, before, error = time.perf_counter(), _subject(arguments), None
        try:
            return call(plugin, *arguments)
        except BaseException as raised:
            error = raised
            raise
        finally:
            report(began, before, _subject(arguments), arguments, error)
            error = None

    return traced_call


def _wrapped_async(call: Call, is_chain: bool, report: Callable[..., None]) -> Call:
    async def traced_call(plugin: Any, *arguments: Any) -> Any:
        began, before, error, answer = time.perf_counter(), _subject(arguments), None, None
        try:
            answer = await call(plugin, *arguments)
        except BaseException as raised:
            error = raised
            raise
        else:
            return answer
        finally:
            after = digest(answer) if is_chain and error is None else _subject(arguments)
            report(began, before, after, arguments, error)
            error = None

    return traced_call


def _subject(arguments: tuple[Any, ...]) -> str:
    return digest(arguments[0]) if arguments else ""


def digest(value: Any) -> str:
    """Sixteen hexadecimal digits that change when the value does: its JSON form, or its public attributes'."""
    plain = strict_json(_visible(value))
    return hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=8).hexdigest()


def _visible(value: Any) -> Any:
    slots = [
        name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if not name.startswith("_")
    ]
    if isinstance(value, Mapping | list | tuple | str) or not slots:
        return value

    return {name: _visible(getattr(value, name, None)) for name in slots}
