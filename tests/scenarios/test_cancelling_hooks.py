"""Cancelling reaches a run wherever it waits (scenario A19: the kind behind it)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import hookimpl, tool
from ropewalk.errors import ModelThrottledException
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

STUCK = 30
"""Seconds that a stuck wait would take, if nothing ended it."""


class Waiting:
    """A plugin that waits in one place, once."""

    name = "waiting"

    def __init__(self):
        self.started = threading.Event()
        self.ended = False

    async def wait(self):
        if not self.started.is_set():
            self.started.set()
            await asyncio.sleep(STUCK)
            self.ended = True


class InInvocation(Waiting):
    @hookimpl
    async def around_invocation(self, invocation, call_next):
        await self.wait()
        return await call_next(invocation)


class InContext(Waiting):
    @hookimpl
    async def manage_context(self, request, reason):
        await self.wait()


class InStop(Waiting):
    @hookimpl
    async def decide_stop(self, cycle):
        await self.wait()


class BeforeModel(Waiting):
    @hookimpl
    async def around_model_call(self, request, call_next):
        await self.wait()
        return await call_next(request)


class AfterModel(Waiting):
    @hookimpl
    async def around_model_call(self, request, call_next):
        outcome = await call_next(request)
        await self.wait()
        return outcome


class BeforeTools(Waiting):
    @hookimpl
    async def around_tools(self, batch, call_next):
        await self.wait()
        return await call_next(batch)


class BeforeTool(Waiting):
    @hookimpl
    async def around_tool_call(self, call, call_next):
        await self.wait()
        return await call_next(call)


class AfterTool(Waiting):
    @hookimpl
    async def around_tool_call(self, call, call_next):
        result = await call_next(call)
        await self.wait()
        return result


class BackingOff(Waiting):
    @hookimpl
    async def decide_retry(self, failure):
        self.started.set()
        return float(STUCK)


@tool
async def ping() -> str:
    """Pings."""
    return "pong"


PLACES = [InInvocation, InContext, InStop, BeforeModel, AfterModel, BeforeTools, BeforeTool, AfterTool]


@pytest.mark.parametrize("place", PLACES)
def test_cancelling_reaches_a_hook_that_waits(ask, make_agent, cancel_when, place):
    """Scenario A19."""

    def model(request):
        return "done" if "toolResult" in request.messages[-1]["content"][0] else [use("ping", {}), use("ping", {})]

    plugin = place()
    agent, _ = make_agent(ScriptedModel(model), tools=[ping], plugins=[plugin])
    cancel_when(plugin.started, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert not plugin.ended
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "done\n"
    assert_valid_history(agent.messages)


def test_cancelling_ends_the_wait_before_another_attempt(ask, make_agent, cancel_when):
    """Scenario A19."""
    plugin = BackingOff()
    agent, model = make_agent([ModelThrottledException("slow down"), "done"], plugins=[plugin])
    cancel_when(plugin.started, agent)

    result = ask(agent, "go")

    assert (result.stop_reason, model.calls, list(agent.messages)) == ("cancelled", 1, [])
    assert str(ask(agent, "again")) == "done\n"


def test_cancelling_reaches_a_provider_that_never_answers(ask, make_agent, cancel_when):
    """Scenario A19."""
    agent, model = make_agent([turn(stall=STUCK * 10), "done"])
    cancel_when(model.stalled, agent)

    assert ask(agent, "go").stop_reason == "cancelled"
    assert (model.active, model.aborted) == (0, 1)
    assert str(ask(agent, "again")) == "done\n"


def test_cancelling_in_the_second_cycle_keeps_the_first(ask, make_agent, cancel_when):
    """Scenario A19."""
    agent, model = make_agent([use("ping", {}), turn(stall=STUCK * 10), "done"], tools=[ping])
    cancel_when(model.stalled, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert [message["role"] for message in agent.messages][:3] == ["user", "assistant", "user"]
    assert_valid_history(agent.messages)
    ask(agent, "again")
    assert_valid_history(model.requests[-1].messages)
