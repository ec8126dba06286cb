"""`Plugin`: a class whose `@hook` methods are callbacks and whose `@tool` methods are tools of the agent."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

from ropewalk import hookimpl
from ropewalk.errors import PluginError
from ropewalk.kits.hooks.signatures import mark_of
from ropewalk.kits.lifecycle import HookEvent, HookOrder
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import Tool
from ropewalk_hooks.plugin import ensure_dispatcher
from ropewalk_hooks.registry import registering_plugin

if TYPE_CHECKING:
    from ropewalk.agent import Agent

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "__ropewalk_hook__"


@dataclass(frozen=True, slots=True)
class _Marked:
    event_type: Any
    order: float


@overload
def hook(function: F, /) -> F: ...


@overload
def hook(
    event_type: type[HookEvent] | list[type[HookEvent]] | None = None, /, *, order: float = HookOrder.DEFAULT
) -> Callable[[F], F]: ...


def hook(target: Any = None, /, *, order: float = HookOrder.DEFAULT) -> Any:
    """Marks a method of a `Plugin` as a callback: `@hook`, `@hook(BeforeModelCallEvent)`, `@hook(order=10)`.

    Args:
        target: The method, when the decorator stands without parentheses; else the event or a list of them. Without
            events they are taken from the annotation of the method's parameter.
        order: Lower is called first.
    """
    if isinstance(target, FunctionType):
        setattr(target, _MARK, _Marked(None, order))
        return target

    def mark(function: F) -> F:
        setattr(function, _MARK, _Marked(target, order))
        return function

    return mark


class _Initialiser:
    """Holds a subclass's `init_agent`.

    A hook has that name, and what users write is no implementation of it: it may be synchronous, and runs when the
    agent is constructed. Behind a descriptor it is not taken for an unmarked implementation.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.function if instance is None else self.function.__get__(instance, owner)


def _no_init(self: Plugin, agent: Agent) -> None:
    """Does nothing."""


class Plugin:
    """Base for plugins that are made of callbacks and tools.

    Set `name`, mark callbacks with `@hook` and tools with `@tool`. `init_agent(agent)` may be defined: synchronous, it
    is called when the agent is constructed; async, it is awaited before the agent's first run. Methods marked with
    `@hookimpl` work too.
    """

    name: ClassVar[str]

    init_agent: Any = _Initialiser(_no_init)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("init_agent")
        if isinstance(own, FunctionType) and mark_of(own) is None:
            cls.init_agent = _Initialiser(own)

    @hookimpl(specname="on_agent_ready")
    def _register_hooks(self, agent: Agent) -> None:
        with _registering():
            for name, mark in _marked(type(self)):
                agent.add_hook(getattr(self, name), mark.event_type, order=mark.order)

            if self._awaits_init():
                ensure_dispatcher(agent)  # so that what it registers counts from the first run on
            elif self._initialiser() is not None:
                _refuse_awaitable(self, self.init_agent(agent))

    @hookimpl(specname="init_agent")
    async def _await_init(self, agent: Agent) -> None:
        if self._awaits_init():
            with _registering():
                await self.init_agent(agent)

    @hookimpl(specname="provide_tools")
    def _bring_tools(self) -> list[Tool]:
        named = [name for name, value in _attributes(type(self)) if is_tool(value)]
        return [getattr(self, name) for name in named]

    def _initialiser(self) -> Callable[..., Any] | None:
        """What the subclass wrote; None when it wrote nothing, or an implementation of the hook."""
        held = inspect.getattr_static(type(self), "init_agent", None)
        return held.function if isinstance(held, _Initialiser) and held.function is not _no_init else None

    def _awaits_init(self) -> bool:
        return inspect.iscoroutinefunction(self._initialiser())


@contextmanager
def _registering() -> Iterator[None]:
    token = registering_plugin.set(True)
    try:
        yield
    finally:
        registering_plugin.reset(token)


def _attributes(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class has, as it stands in the class bodies: base classes first, in the order of definition."""
    seen: dict[str, Any] = {}
    for each in reversed(cls.__mro__[:-1]):
        seen.update(vars(each))

    return iter(seen.items())


def _marked(cls: type) -> Iterator[tuple[str, _Marked]]:
    for name, value in _attributes(cls):
        mark = getattr(value, _MARK, None) if isinstance(value, FunctionType) else None
        if isinstance(mark, _Marked):
            yield name, mark


def _refuse_awaitable(plugin: Plugin, answer: Awaitable[None] | None) -> None:
    if not inspect.isawaitable(answer):
        return

    if inspect.iscoroutine(answer):
        answer.close()

    raise PluginError(f"init_agent of plugin {plugin.name!r} returned an awaitable and is no `async def`: make it one")
