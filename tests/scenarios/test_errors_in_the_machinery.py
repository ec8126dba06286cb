"""Errors lost on the way: hooks, callbacks and observers that raise (scenario A30)."""

from __future__ import annotations

import logging

import pytest

from ropewalk import Agent, ConcurrentToolExecutor, SequentialToolExecutor, hookimpl, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, use


class HookFailed(Exception):  # noqa: N818 - reads as the fact it states
    pass


@tool
async def ping() -> str:
    """Pings."""
    return "pong"


class Switch:
    """A plugin that fails once, while it is on."""

    name = "faulty"

    def __init__(self):
        self.on = True

    def fail(self):
        if self.on:
            self.on = False
            raise HookFailed("broken hook")


class InCheck(Switch):
    @hookimpl
    def check_call(self, options):
        self.fail()


class BeforeInvocation(Switch):
    @hookimpl
    async def around_invocation(self, invocation, call_next):
        self.fail()
        return await call_next(invocation)


class AfterInvocation(Switch):
    @hookimpl
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        self.fail()
        return result


class InStop(Switch):
    @hookimpl
    async def decide_stop(self, cycle):
        self.fail()


class BeforeModel(Switch):
    @hookimpl
    async def around_model_call(self, request, call_next):
        self.fail()
        return await call_next(request)


class AfterModel(Switch):
    @hookimpl
    async def around_model_call(self, request, call_next):
        outcome = await call_next(request)
        self.fail()
        return outcome


class BeforeTools(Switch):
    @hookimpl
    async def around_tools(self, batch, call_next):
        self.fail()
        return await call_next(batch)


class AfterTools(Switch):
    @hookimpl
    async def around_tools(self, batch, call_next):
        outcome = await call_next(batch)
        self.fail()
        return outcome


class BeforeTool(Switch):
    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.fail()
        return await call_next(call)


class AfterTool(Switch):
    @hookimpl
    async def around_tool_call(self, call, call_next):
        result = await call_next(call)
        self.fail()
        return result


class InContext(Switch):
    @hookimpl
    async def manage_context(self, request, reason):
        self.fail()


class AtTheEnd(Switch):
    @hookimpl
    async def decide_continue(self, message):
        self.fail()


class InEvent(Switch):
    @hookimpl
    async def on_event(self, event):
        self.fail()


class InDelta(Switch):
    @hookimpl
    def on_delta(self, event):
        self.fail()


GUARDS = [
    InCheck, BeforeInvocation, AfterInvocation, InStop, BeforeModel, AfterModel, BeforeTools, AfterTools, BeforeTool,
    AfterTool, InContext, AtTheEnd, InEvent, InDelta,
]  # fmt: skip


@pytest.mark.parametrize("executor", [SequentialToolExecutor, ConcurrentToolExecutor])
@pytest.mark.parametrize("guard", GUARDS)
def test_a_guards_error_stops_the_run_and_reaches_the_caller(ask, make_agent, guard, executor):
    """Scenario A30."""

    def model(request):
        return "done" if "toolResult" in request.messages[-1]["content"][0] else [use("ping", {}), use("ping", {})]

    agent, _ = make_agent(ScriptedModel(model), tools=[ping], plugins=[guard()], tool_executor=executor())

    with pytest.raises(HookFailed, match="broken hook") as caught:
        ask(agent, "one")

    assert any("faulty" in note for note in getattr(caught.value, "__notes__", [])), "the plugin is not named"
    assert_valid_history(agent.messages)
    assert str(ask(agent, "two")) == "done\n"
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("guard", [InCheck, BeforeInvocation, InStop, BeforeModel, AfterModel, InContext])
def test_an_error_before_the_model_contributed_leaves_no_dangling_user_turn(ask, make_agent, guard):
    """Scenario A30."""
    agent, _ = make_agent(["an answer", "an answer"], plugins=[guard()])

    with pytest.raises(HookFailed):
        ask(agent, "one")

    assert list(agent.messages) == []


@pytest.mark.parametrize("guard", [BeforeTool, AfterTool, BeforeTools, AfterTools])
def test_an_error_around_tools_leaves_every_tool_use_answered(ask, make_agent, guard):
    """Scenario A30."""
    agent, model = make_agent(
        [[use("ping", {}, id="A"), use("ping", {}, id="B")], "done"], tools=[ping], plugins=[guard()]
    )

    with pytest.raises(HookFailed):
        ask(agent, "one")

    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user"]
    assert_valid_history(agent.messages)
    ask(agent, "two")
    assert_valid_history(model.requests[1].messages)


@pytest.mark.parametrize("key", ["init_event_loop", "data", "message", "tools_starting", "result"])
def test_a_callback_handlers_error_reaches_the_caller_and_frees_the_agent(ask, key):
    """Scenario A30."""
    broken = [True]

    def callback(**event):
        if key in event and broken:
            broken.clear()
            raise HookFailed("broken callback")

    def model(request):
        return "done" if "toolResult" in request.messages[-1]["content"][0] else ["well", use("ping", {})]

    agent = Agent(model=ScriptedModel(model), tools=[ping], callback_handler=callback)

    with pytest.raises(HookFailed, match="broken callback"):
        ask(agent, "one")

    assert_valid_history(agent.messages)
    assert str(ask(agent, "two")) == "done\n"
    assert_valid_history(agent.messages)


class Broken:
    """An observer that notes what it was told, and then fails."""

    name = "broken-watcher"
    tier = "observer"

    def __init__(self):
        self.events = []

    @hookimpl
    async def on_event(self, event):
        self.events.append(event)
        raise HookFailed("broken observer")

    @hookimpl
    def on_delta(self, event):
        self.events.append(event)
        raise HookFailed("broken observer")


class Sound:
    """An observer that notes what it was told."""

    name = "sound-watcher"
    tier = "observer"

    def __init__(self):
        self.events = []

    @hookimpl
    async def on_event(self, event):
        self.events.append(event)

    @hookimpl
    def on_delta(self, event):
        self.events.append(event)


def test_an_observers_error_is_logged_with_its_name_and_stops_nobody(ask, make_agent, caplog):
    """Scenario A30."""
    broken, sound = Broken(), Sound()
    agent, _ = make_agent([use("ping", {}), "done"], tools=[ping], plugins=[broken, sound])

    with caplog.at_level(logging.DEBUG):
        assert str(ask(agent, "go")) == "done\n"

    records = [record for record in caplog.records if "broken-watcher" in record.getMessage()]
    assert records
    assert all(record.name.startswith("ropewalk") for record in records)
    assert all(record.levelno >= logging.WARNING for record in records)
    assert len(broken.events) == len(sound.events) > 0
    assert not [record for record in caplog.records if "sound-watcher" in record.getMessage()]


def test_an_observer_does_not_shield_a_guards_error(ask, make_agent):
    """Scenario A30."""
    agent, _ = make_agent(["never", "done"], plugins=[Broken(), BeforeModel()])

    with pytest.raises(HookFailed, match="broken hook"):
        ask(agent, "one")

    assert str(ask(agent, "two")) == "never\n"


def test_a_models_error_is_not_noted_as_a_plugins(ask, make_agent):
    """Scenario A30."""

    class Passing:
        name = "passing"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            return await call_next(invocation)

        @hookimpl
        async def around_model_call(self, request, call_next):
            return await call_next(request)

    error = RuntimeError("the model's own")
    agent, _ = make_agent([error], plugins=[Passing()])

    with pytest.raises(RuntimeError) as caught:
        ask(agent, "go")

    assert not [note for note in getattr(caught.value, "__notes__", []) if "passing" in note]
