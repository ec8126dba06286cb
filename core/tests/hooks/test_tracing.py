from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.tracing import HookCall, digest
from ropewalk.markers import hookimpl


@pytest.fixture(autouse=True)
def _any_answer(monkeypatch):
    """The calls are looked at here, not what a hook may answer (test_garbage.py)."""
    monkeypatch.setattr("ropewalk.kits.hooks.answers._RULES", {})


class Tracer:
    """Notes calls of hooks."""

    name = "tracer"
    tier = "observer"

    def __init__(self):
        self.calls = []
        self.agents = []

    @hookimpl
    def on_hook_call(self, call, agent):
        self.calls.append(call)
        self.agents.append(agent)


def plugin(name="one", **body):
    return type("Plugin", (), {"name": name, **{hook: hookimpl(function) for hook, function in body.items()}})()


@pytest.fixture
def tracer():
    return Tracer()


def told(tracer):
    return [(call.plugin, call.hook, call.error) for call in tracer.calls]


def test_without_an_observer_of_calls_nothing_is_wrapped():
    def on_delta(self, event, agent): ...

    one = plugin(on_delta=on_delta)
    [link] = Hooks.of([one]).plan.on_delta
    assert link.call is link.function


def test_every_link_is_wrapped_but_the_observers_own(tracer):
    def on_delta(self, event, agent): ...

    plan = Hooks.of([plugin(on_delta=on_delta), tracer]).plan

    [link], [own] = plan.on_delta, plan.on_hook_call
    assert link.call is not link.function
    assert own.call is own.function
    assert (link.plugin_name, link.hook, link.tier, link.function.__name__) == ("one", "on_delta", "normal", "on_delta")


def test_a_synchronous_call_is_told_after_it_happened(tracer):
    def on_delta(self, event):
        assert tracer.calls == []

    hooks = Hooks.of([plugin(on_delta=on_delta), tracer])
    hooks.on_delta({"a": 1}, "the agent")

    [call] = tracer.calls
    assert (call.plugin, call.hook, call.error) == ("one", "on_delta", None)
    assert call.before == call.after == digest({"a": 1})
    assert call.seconds >= 0
    assert not call.changed
    assert tracer.agents == ["the agent"]


async def test_awaited_calls_are_told_in_order(tracer):
    async def on_event(self, event): ...

    hooks = Hooks.of([plugin("a", on_event=on_event), plugin("b", on_event=on_event), tracer])
    await hooks.on_event({}, None)

    assert told(tracer) == [("a", "on_event", None), ("b", "on_event", None)]


async def test_a_chain_is_told_from_the_inside_out_with_what_it_returned(tracer):
    async def around_tool_call(self, call, call_next):
        return {**await call_next(call), self.name: True}

    async def inner(call):
        return {"inner": True}

    hooks = Hooks.of(
        [plugin("out", around_tool_call=around_tool_call), plugin("in", around_tool_call=around_tool_call), tracer]
    )
    result = await hooks.around_tool_call(inner, None)({"the": "call"})

    assert told(tracer) == [("in", "around_tool_call", None), ("out", "around_tool_call", None)]
    assert {call.before for call in tracer.calls} == {digest({"the": "call"})}
    assert [call.after for call in tracer.calls] == [digest({"inner": True, "in": True}), digest(result)]
    assert not any(call.changed for call in tracer.calls)


def test_a_link_that_writes_to_what_it_is_shown_is_seen(tracer):
    def on_delta(self, event):
        event["more"] = 1

    Hooks.of([plugin(on_delta=on_delta), tracer]).on_delta({}, None)

    assert tracer.calls[0].changed


def test_an_error_is_told_and_raised(tracer):
    def provide_model(self, spec):
        raise ZeroDivisionError

    hooks = Hooks.of([plugin(provide_model=provide_model), tracer])
    with pytest.raises(ZeroDivisionError):
        hooks.provide_model("x", None)

    assert told(tracer) == [("one", "provide_model", "ZeroDivisionError")]


async def test_a_cancelled_call_is_told_and_stays_cancelled(tracer):
    async def on_event(self, event):
        await asyncio.Event().wait()

    hooks = Hooks.of([plugin(on_event=on_event), tracer])
    task = asyncio.ensure_future(hooks.on_event({}, None))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert told(tracer) == [("one", "on_event", "CancelledError")]


def test_a_hook_without_an_agent_is_told_without_one(tracer):
    def provide_commands(self):
        return ["command"]

    assert Hooks.of([plugin(provide_commands=provide_commands), tracer]).provide_commands() == ["command"]
    assert (told(tracer), tracer.agents) == ([("one", "provide_commands", None)], [None])
    assert (tracer.calls[0].before, tracer.calls[0].after) == ("", "")


def test_an_observer_that_fails_stops_nobody(tracer, caplog):
    class Failing(Tracer):
        name = "failing"

        @hookimpl
        def on_hook_call(self, call, agent):
            raise ZeroDivisionError

    def on_delta(self, event): ...

    Hooks.of([plugin(on_delta=on_delta), Failing(), tracer]).on_delta({}, None)

    assert told(tracer) == [("one", "on_delta", None)]
    assert "the observer failing" in caplog.text


def test_the_answers_are_those_of_the_plain_plan(tracer):
    def provide_model(self, spec):
        return f"model {spec}"

    one = plugin(provide_model=provide_model)
    assert Hooks.of([one, tracer]).provide_model("x", None) == Hooks.of([one]).provide_model("x", None) == "model x"


# -- digests -----------------------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("_hidden", "shown")

    def __init__(self, shown, hidden=0):
        self.shown = shown
        self._hidden = hidden


@dataclass
class Plain:
    value: object


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ([1], [1, 1]),
        ("a", "b"),
        (None, 0),
        (Slotted(1), Slotted(2)),
        (Slotted({"deep": [1]}), Slotted({"deep": [2]})),
        (Plain(1), Plain(2)),
    ],
)
def test_a_digest_changes_with_the_value(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Slotted(1, hidden=1), Slotted(1, hidden=2)),
        (Plain([1]), Plain([1])),
    ],
)
def test_a_digest_does_not_depend_on_order_or_on_what_is_private(one, other):
    assert digest(one) == digest(other)


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}, object, lambda: None, {(1, 2): 3}])
def test_everything_has_a_digest(value):
    assert len(digest(value)) == 16


def test_what_contains_itself_has_a_digest():
    loop = []
    loop.append(loop)
    assert len(digest(loop)) == 16


def test_what_a_chain_returns_is_no_change_of_what_it_was_given():
    assert not HookCall("one", "around_tools", 0.0, "a", "b", None).changed
    assert HookCall("one", "on_event", 0.0, "a", "b", None).changed
