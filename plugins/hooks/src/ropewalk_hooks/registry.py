"""The callbacks of one agent, by event and in the order in which they are called."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast, final

from ropewalk.kits.lifecycle import AgentInitializedEvent, HookEvent, HookOrder, HookProvider
from ropewalk.kits.suspension import Interrupt, Suspend
from ropewalk_hooks.errors import HookError
from ropewalk_hooks.inference import event_types, is_async, shown

TEvent = TypeVar("TEvent", bound=HookEvent)

logger = logging.getLogger("ropewalk.hooks")

registering_plugin: ContextVar[bool] = ContextVar("ropewalk_registering_plugin", default=False)
"""Set while a plugin registers its callbacks: a clone of the agent does not inherit them, its plugins register anew."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One registration.

    Attributes:
        order: Lower is called first.
        number: Place in the order of registration.
        callback: What is called.
        of_plugin: Whether a plugin registered it.
    """

    order: float
    number: int
    callback: Callable[..., Any]
    of_plugin: bool


@final
class HookRegistry:
    """Callbacks under their events. Registered at any time, from any thread, they count at the next event."""

    __slots__ = ("_entries", "_lock", "_next")

    def __init__(self) -> None:
        self._entries: dict[type[HookEvent], tuple[Entry, ...]] = {}
        self._lock = threading.Lock()
        self._next = 0

    # -- registering -----------------------------------------------------------------------------------------------

    def add_callback(
        self,
        event_type: type[TEvent] | list[type[TEvent]] | None,
        callback: Callable[[TEvent], Awaitable[None] | None],
        *,
        order: float = HookOrder.DEFAULT,
    ) -> None:
        """Registers a callback.

        Args:
            event_type: A class of events, a list of them, or None to take them from the callback's annotation.
            callback: Called with the event; what it returns is awaited when it can be.
            order: Lower is called first; equal ones in the order of registration, reversed for After* events.

        Raises:
            HookError: There is no type, a type is no event, the order is no number, or the callback is none; or it is
                async and the event is AgentInitializedEvent, which is dispatched without waiting.
        """
        if isinstance(order, bool) or not isinstance(order, int | float) or order != order:  # noqa: PLR0124 - NaN
            raise HookError(f"order={order!r} is no number: use 0, or less to be called before others")

        kinds = event_types(callback, event_type)
        if AgentInitializedEvent in kinds and is_async(callback):
            raise HookError(
                f"{shown(callback)} is async and AgentInitializedEvent is dispatched while the agent is constructed, "
                "where nothing is awaited: make it a plain function, or await in a plugin's init_agent"
            )

        self._insert(kinds, callback, order, of_plugin=registering_plugin.get())

    def add_hook(self, provider: HookProvider) -> None:
        """Lets an object register its callbacks.

        Raises:
            HookError: It is no HookProvider.
        """
        if isinstance(provider, type) or not isinstance(provider, HookProvider):
            raise HookError(f"{provider!r:.80} is no HookProvider: give an instance with a method register_hooks")

        provider.register_hooks(self)

    def copy(self) -> HookRegistry:
        """The callbacks that no plugin registered, for a clone of the agent."""
        other = HookRegistry()
        other._next = self._next
        for kind, entries in list(self._entries.items()):
            other._entries[kind] = tuple(entry for entry in entries if not entry.of_plugin)

        return other

    def _insert(
        self, kinds: tuple[type[HookEvent], ...], callback: Callable[..., Any], order: float, *, of_plugin: bool
    ) -> None:
        with self._lock:
            entry = Entry(order, self._next, callback, of_plugin)
            self._next += 1
            for kind in kinds:
                sign = -1 if kind.should_reverse_callbacks else 1
                entries = (*self._entries.get(kind, ()), entry)
                self._entries[kind] = tuple(sorted(entries, key=lambda each, s=sign: (each.order, s * each.number)))  # type: ignore[misc]  # a default fixes the loop's value

    # -- dispatching -----------------------------------------------------------------------------------------------

    def has_callbacks(self, event_type: type[HookEvent] | None = None) -> bool:
        """Whether anybody is called for this class of events, or for any."""
        if event_type is None:
            return any(self._entries.values())

        return bool(self._entries.get(event_type))

    def invoke_callbacks(self, event: TEvent) -> TEvent:
        """Calls the callbacks of an event where nothing can be awaited.

        Raises:
            RuntimeError: A callback is async.
            Exception: What a callback raised; the rest is not called.
        """
        for entry in self._entries.get(type(event), ()):
            try:
                _refuse_awaitable(entry.callback(event), entry.callback, event)
            except Exception as error:
                _note(error, entry, event)
                raise

        return event

    async def invoke_callbacks_async(self, event: TEvent) -> TEvent:
        """Calls the callbacks of an event, one after the other, and awaits those that are async.

        Returns:
            The event, as the callbacks left it.

        Raises:
            Exception: What a callback raised. The rest is not called, except for After* events: there all are called,
                and several errors come as an ExceptionGroup.
            Suspend: Callbacks ask the agent's caller; with the questions of all.
        """
        entries = self._entries.get(type(event), ())
        if event.should_reverse_callbacks:
            await _call_all(entries, event)
        else:
            await _call_each(entries, event)

        return event

    async def clean_up(self, event: HookEvent, error: BaseException) -> None:
        """Calls the callbacks of an After* event on the way out of a failure.

        Raises:
            Exception: What a callback raised. It takes the failure's or pause's place and has it as context; but
                nothing takes the place of a cancellation: then it is logged.
            Suspend: Callbacks ask the agent's caller; with the questions of the pause that is under way.
        """
        if isinstance(error, GeneratorExit):  # the coroutine is being closed and can wait for nobody
            return

        try:
            await self.invoke_callbacks_async(event)
        except Suspend as suspend:
            if isinstance(error, Suspend):
                raise Suspend((*error.interrupts, *suspend.interrupts), error.memo) from None

            if isinstance(error, Exception):
                raise

            logger.warning("the questions of callbacks for %s give way to %r", type(event).__name__, error)
        except Exception:
            if isinstance(error, Exception | Suspend):
                raise

            logger.exception("a callback for %s failed on the way out of %r", type(event).__name__, error)


class _Questions:
    """What callbacks of one event ask."""

    __slots__ = ("_asked", "_event")

    def __init__(self, event: HookEvent) -> None:
        self._event = event
        self._asked: dict[str, tuple[Interrupt, Entry]] = {}

    def add(self, suspend: Suspend, entry: Entry) -> None:
        """Takes the questions of one callback.

        Raises:
            HookError: Another callback asks under the same name, so that an answer could not be told apart.
        """
        for each in suspend.interrupts:
            _, other = self._asked.setdefault(each.id, (each, entry))
            if other is not entry:
                raise HookError(
                    f"{shown(other.callback)} and {shown(entry.callback)} both interrupt "
                    f"{type(self._event).__name__} with the name {each.name!r}: give each question its own name"
                )

    def ask(self) -> None:
        """Raises what was asked, if anything was."""
        if self._asked:
            raise Suspend([question for question, _ in self._asked.values()])


async def _call_each(entries: tuple[Entry, ...], event: HookEvent) -> None:
    """Calls one after the other, up to the first error; one that asks something does not keep the others from it."""
    questions = _Questions(event)
    for entry in entries:
        await _call_asking(entry, event, questions)

    questions.ask()


async def _call(entry: Entry, event: HookEvent) -> None:
    try:
        answer = entry.callback(event)
        if answer is not None and inspect.isawaitable(answer):
            await answer
    except Exception as error:
        _note(error, entry, event)
        raise


async def _call_all(entries: tuple[Entry, ...], event: HookEvent) -> None:
    """Calls every one, whatever the others raise."""
    errors: list[Exception] = []
    halted: BaseException | None = None
    questions = _Questions(event)
    try:
        for entry in entries:
            try:
                await _call_asking(entry, event, questions)
            except GeneratorExit:  # the coroutine is being closed and can wait for nobody
                raise
            except BaseException as error:  # noqa: BLE001 - all are called first, then it is raised
                if isinstance(error, Exception):
                    errors.append(error)
                else:
                    halted = halted or error

        _raise(errors, halted, event)
        questions.ask()
    finally:
        errors, halted = [], None  # an error must not refer to itself through this frame


async def _call_asking(entry: Entry, event: HookEvent, questions: _Questions) -> None:
    try:
        await _call(entry, event)
    except Suspend as suspend:
        questions.add(suspend, entry)


def _raise(errors: list[Exception], halted: BaseException | None, event: HookEvent) -> None:
    name = type(event).__name__
    try:
        if halted is not None:
            while errors:
                logger.error("an error of a callback for %s gives way to %r", name, halted, exc_info=errors.pop(0))

            raise halted

        if len(errors) == 1:
            raise errors[0]

        if errors:
            raise ExceptionGroup(f"{len(errors)} callbacks for {name} failed", errors)
    finally:
        del errors, halted  # as above


def _note(error: Exception, entry: Entry, event: HookEvent) -> None:
    note = f"in {shown(entry.callback)} for {type(event).__name__}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _refuse_awaitable(answer: Any, callback: object, event: HookEvent) -> None:
    if answer is None or not inspect.isawaitable(answer):
        return

    if inspect.iscoroutine(answer):
        cast("Any", answer).close()

    raise RuntimeError(
        f"{shown(callback)} returned an awaitable for {type(event).__name__}, which is dispatched where nothing is "
        "awaited: make it a plain function"
    )
