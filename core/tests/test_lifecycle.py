from __future__ import annotations

import dataclasses

import pytest

from ropewalk.kits.lifecycle import (
    EVENTS,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    HookEvent,
    HookOrder,
    HookProvider,
)

WRITABLE = {
    "AgentInitializedEvent": set(),
    "BeforeInvocationEvent": {"messages", "cancel"},
    "AfterInvocationEvent": {"resume"},
    "MessageAddedEvent": set(),
    "BeforeModelCallEvent": {"cancel"},
    "AfterModelCallEvent": {"retry"},
    "BeforeToolsEvent": {"cancel"},
    "AfterToolsEvent": {"end_turn"},
    "BeforeToolCallEvent": {"selected_tool", "tool_use", "cancel_tool"},
    "AfterToolCallEvent": {"result", "retry"},
}


def made(kind):
    """An event with a value in every required field."""
    required = [
        each
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    return kind(**dict.fromkeys((each.name for each in required), "value"))


@pytest.mark.parametrize("kind", EVENTS)
def test_just_the_writable_fields_of_an_event_can_be_written(kind):
    event = made(kind)
    written = set()
    for each in dataclasses.fields(kind):
        try:
            setattr(event, each.name, "other")
        except AttributeError as error:
            assert f"{kind.__name__}.{each.name}" in str(error)  # noqa: PT017 - either outcome is one that counts
        else:
            assert getattr(event, each.name) == "other"
            written.add(each.name)

    assert written == WRITABLE[kind.__name__]


def test_an_error_of_writing_names_what_can_be_written():
    with pytest.raises(AttributeError, match="its writable fields are cancel, messages"):
        BeforeInvocationEvent(agent=None).invocation_state = {}


def test_an_event_takes_no_other_attributes_and_loses_none():
    event = AfterToolCallEvent(None, None, {}, {}, {})
    with pytest.raises(AttributeError, match=r"AfterToolCallEvent\.colour cannot be written"):
        event.colour = "red"

    with pytest.raises(AttributeError, match=r"AfterToolCallEvent\.retry cannot be deleted"):
        del event.retry


def test_what_comes_after_something_is_told_in_reverse():
    reversed_ones = {kind.__name__ for kind in EVENTS if kind.should_reverse_callbacks}
    assert reversed_ones == {name for name in WRITABLE if name.startswith("After")}


def test_tokens_are_counted_once_and_only_when_somebody_asks():
    counts = []
    event = BeforeModelCallEvent(None, count=lambda: counts.append(1) or 7)
    assert counts == []

    assert (event.projected_input_tokens, event.projected_input_tokens) == (7, 7)
    assert counts == [1]
    assert BeforeModelCallEvent(None).projected_input_tokens is None


def test_a_provider_is_whatever_registers_hooks():
    class Mine:
        def register_hooks(self, registry): ...

    assert isinstance(Mine(), HookProvider)
    assert not isinstance(object(), HookProvider)


def test_the_places_of_the_order():
    assert (HookOrder.SDK_FIRST, HookOrder.DEFAULT, HookOrder.SDK_LAST) == (-100, 0, 100)


def test_the_base_is_no_event_of_its_own():
    assert HookEvent not in EVENTS
    assert all(issubclass(kind, HookEvent) for kind in EVENTS)
