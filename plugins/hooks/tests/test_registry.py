from __future__ import annotations

import asyncio
import logging

import pytest

from ropewalk.kits.lifecycle import AfterInvocationEvent, AgentInitializedEvent, BeforeInvocationEvent, HookEvent
from ropewalk_hooks import HookError, HookRegistry


@pytest.fixture
def registry():
    return HookRegistry()


def raising(error):
    def callback(event):
        raise error

    return callback


async def test_the_event_comes_back_as_the_callbacks_left_it(registry):
    def cancel(event):
        event.cancel = "no"

    registry.add_callback(BeforeInvocationEvent, cancel)
    event = BeforeInvocationEvent(None)

    assert await registry.invoke_callbacks_async(event) is event
    assert event.cancel == "no"


async def test_events_of_other_plugins_are_dispatched_too(registry):
    class Mine(HookEvent):
        pass

    seen = []
    registry.add_callback(Mine, seen.append)
    await registry.invoke_callbacks_async(Mine(None))

    assert [type(event) for event in seen] == [Mine]


@pytest.mark.parametrize("order", [True, "1", None, float("nan")])
def test_an_order_that_is_no_number_is_refused(registry, order):
    with pytest.raises(HookError, match="order"):
        registry.add_callback(BeforeInvocationEvent, print, order=order)


def test_a_synchronous_dispatch_refuses_what_must_be_awaited(registry):
    async def later(event): ...

    registry.add_callback(AgentInitializedEvent, lambda event: later(event))  # noqa: PLW0108 - hides that it is async
    with pytest.raises(RuntimeError, match="returned an awaitable for AgentInitializedEvent"):
        registry.invoke_callbacks(AgentInitializedEvent(None))


@pytest.mark.parametrize("provider", [object(), type("Provider", (), {"register_hooks": None})])
def test_what_is_no_provider_is_refused(registry, provider):
    with pytest.raises(HookError, match="HookProvider"):
        registry.add_hook(provider)


async def test_a_callback_registered_while_an_event_is_told_waits_for_the_next(registry):
    seen = []

    def more(event):
        registry.add_callback(BeforeInvocationEvent, lambda event: seen.append("added"))

    registry.add_callback(BeforeInvocationEvent, more)
    await registry.invoke_callbacks_async(BeforeInvocationEvent(None))
    assert seen == []

    await registry.invoke_callbacks_async(BeforeInvocationEvent(None))
    assert seen == ["added"]


async def test_a_cancellation_among_cleanup_callbacks_is_raised_when_all_have_run(registry, caplog):
    seen = []
    registry.add_callback(AfterInvocationEvent, lambda event: seen.append("last"))
    registry.add_callback(AfterInvocationEvent, raising(LookupError("broken")))
    registry.add_callback(AfterInvocationEvent, raising(asyncio.CancelledError()))

    with caplog.at_level(logging.ERROR, "ropewalk.hooks"), pytest.raises(asyncio.CancelledError):
        await registry.invoke_callbacks_async(AfterInvocationEvent(None))

    assert seen == ["last"]
    assert "gives way to CancelledError" in caplog.text


async def test_an_error_of_cleanup_has_the_failure_as_its_context(registry):
    registry.add_callback(AfterInvocationEvent, raising(LookupError("broken")))
    failure = ValueError("first")

    async def fail():
        try:
            raise failure
        except ValueError as error:
            await registry.clean_up(AfterInvocationEvent(None), error)

    with pytest.raises(LookupError) as caught:
        await fail()

    assert caught.value.__context__ is failure


async def test_an_error_of_cleanup_never_takes_the_place_of_a_cancellation(registry, caplog):
    registry.add_callback(AfterInvocationEvent, raising(LookupError("broken")))

    with caplog.at_level(logging.ERROR, "ropewalk.hooks"):
        await registry.clean_up(AfterInvocationEvent(None), asyncio.CancelledError())

    assert "failed on the way out of CancelledError" in caplog.text


def test_nobody_is_called_while_nothing_is_registered(registry):
    assert not registry.has_callbacks()
    registry.add_callback(BeforeInvocationEvent, print)
    assert registry.has_callbacks()
    assert registry.has_callbacks(BeforeInvocationEvent)
    assert not registry.has_callbacks(AfterInvocationEvent)
