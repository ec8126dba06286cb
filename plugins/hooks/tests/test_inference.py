from __future__ import annotations

import functools
import typing
from typing import TYPE_CHECKING, Optional, Union

import pytest

from ropewalk.kits.lifecycle import AfterModelCallEvent, BeforeModelCallEvent, MessageAddedEvent
from ropewalk_hooks import HookError
from ropewalk_hooks.inference import event_types, is_async, shown

if TYPE_CHECKING:
    from somewhere import Unknown

    from ropewalk import BeforeToolsEvent


def plain(event: MessageAddedEvent): ...


def other_hints(event: MessageAddedEvent, more: Unknown = None) -> Unknown: ...


def old_union(event: Union[BeforeModelCallEvent, AfterModelCallEvent]): ...  # noqa: UP007 - as users write it


def optional(event: Optional[BeforeModelCallEvent]): ...  # noqa: UP045 - as users write it


def for_checkers_only(event: BeforeToolsEvent): ...


def unknown(event: Unknown): ...


def second(log, event: MessageAddedEvent): ...


class Holder:
    def method(self, event: MessageAddedEvent): ...

    def __call__(self, event: MessageAddedEvent): ...

    @staticmethod
    def static(event: MessageAddedEvent): ...


async def coroutine(event: MessageAddedEvent): ...


class AsyncHolder:
    async def __call__(self, event: MessageAddedEvent): ...


@functools.wraps(plain)
def wrapped(*args, **kwargs): ...


@pytest.mark.parametrize(
    "callback",
    [
        plain,
        other_hints,
        wrapped,
        Holder().method,
        Holder(),
        Holder.static,
        coroutine,
        AsyncHolder(),
        functools.partial(second, "log"),
        functools.partial(functools.partial(second), "log"),
        functools.partial(Holder()),
    ],
)
def test_the_type_is_that_of_the_first_parameter_that_is_left(callback):
    assert event_types(callback, None) == (MessageAddedEvent,)


def test_a_union_stands_for_its_members():
    assert event_types(old_union, None) == (BeforeModelCallEvent, AfterModelCallEvent)


def test_a_name_that_is_imported_for_type_checkers_only_is_understood():
    (found,) = event_types(for_checkers_only, None)
    assert found.__name__ == "BeforeToolsEvent"


def test_an_annotation_that_is_no_text_is_understood():
    callback = functools.partial(plain)
    assert event_types(callback, None) == (MessageAddedEvent,)

    def literal(event): ...

    literal.__annotations__["event"] = typing.Union[BeforeModelCallEvent, AfterModelCallEvent]  # noqa: UP007
    assert event_types(literal, None) == (BeforeModelCallEvent, AfterModelCallEvent)


@pytest.mark.parametrize(
    ("callback", "given", "message"),
    [
        (lambda event: None, None, "does not say which events"),
        (lambda: None, MessageAddedEvent, "cannot be called with an event"),
        (lambda event, more: None, MessageAddedEvent, "cannot be called with an event"),
        (optional, None, "NoneType"),
        (unknown, None, "pass the event type"),
        (print, None, "is no event|does not say"),
        (plain, [], "empty"),
        (plain, [None], "no event"),
        (plain, "MessageAddedEvent", "no event"),
        (Holder, MessageAddedEvent, "no callback"),
        (3, MessageAddedEvent, "no callback"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_the_reason(callback, given, message):
    with pytest.raises(HookError, match=message):
        event_types(callback, given)


def test_a_function_of_c_needs_its_types_said():
    seen = []
    assert event_types(seen.append, MessageAddedEvent) == (MessageAddedEvent,)


def test_what_is_async_is_found_out():
    asynchronous = [coroutine, AsyncHolder(), functools.partial(coroutine), functools.partial(AsyncHolder())]
    assert all(map(is_async, asynchronous))
    assert not any(map(is_async, [plain, Holder(), functools.partial(plain), print]))


def test_a_callback_is_shown_by_its_name():
    assert shown(functools.partial(plain)) == "the callback plain"
    assert shown(Holder().method) == "the callback Holder.method"
