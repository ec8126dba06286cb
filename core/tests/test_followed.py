"""What followers of a run are shown, and what they may not do."""

from __future__ import annotations

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, texts, use

from ropewalk import Agent, current_run
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk.kits.events import CycleStarted, MessageAdded, ToolPaused

OLD = [{"role": role, "content": [{"text": text}]} for role, text in (("user", "old"), ("assistant", "times"))]


def follower(seen):
    async def on_event(self, event):
        if isinstance(event, MessageAdded):
            seen.append(event.message)

    return make_plugin(on_event=on_event)


def test_a_direct_call_shows_its_four_messages_and_none_of_the_others():
    seen = []
    agent = Agent(model=FakeModel(), messages=OLD, tools=[FakeTool("t")], plugins=[follower(seen)])
    agent.tool.t()

    assert seen == agent.messages[2:]
    assert len(seen) == 4


def test_a_follower_cannot_pause_the_run(ask):
    async def on_event(self, event):
        current_run().interrupt("ok?")

    agent = Agent(model=FakeModel("done"), plugins=[make_plugin(on_event=on_event)])
    with pytest.raises(RuntimeError, match=r"on_event cannot pause the run \(ok\?\): interrupt in an around_\* hook"):
        ask(agent, "go")

    assert agent.suspension is None


def test_a_guardrail_s_redaction_in_a_stream_that_is_held_is_shown_as_what_is_stored(ask):
    raw = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "secret"}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"redactContent": {"redactAssistantContentMessage": "[gone]"}},
        {"messageStop": {"stopReason": "guardrail_intervened"}},
    ]
    agent = Agent(model=FakeModel(raw))
    ask(agent, "go")

    assert texts(agent.messages[-1]) == ["[gone]"]


def test_cycles_are_counted_from_zero_for_followers_and_those_who_stop(ask):
    shown, asked = [], []

    async def on_event(self, event):
        if isinstance(event, CycleStarted):
            shown.append(event.index)

    async def decide_stop(self, cycle):
        asked.append(cycle.index)

    plugin = make_plugin(on_event=on_event, decide_stop=decide_stop)
    agent = Agent(model=FakeModel(use("t"), use("t"), "done"), tools=[FakeTool("t")], plugins=[plugin])
    ask(agent, "go")

    assert shown == asked == [0, 1, 2]


async def test_those_who_stop_are_told_the_seconds_since_the_run_began():
    class Clock(Seam):
        seconds = 5000.0

        def monotonic(self):
            return self.seconds

    clock, told = Clock(), []

    async def decide_stop(self, cycle):
        told.append(cycle.seconds)
        clock.seconds += 7

    agent = Agent(
        model=FakeModel(use("t"), "done"), tools=[FakeTool("t")], plugins=[make_plugin(decide_stop=decide_stop)]
    )
    with use_seam(clock):
        await agent.invoke_async("go")

    assert told == [0, 7]


def test_followers_are_told_which_calls_wait(ask):
    told = []

    async def on_event(self, event):
        if isinstance(event, ToolPaused):
            told.append(event.as_dict())

    async def asks(call):
        return call.interrupt("ok?")

    turn = [use("t", tool_use_id="A"), use("t", tool_use_id="B")]
    plugins = [parallel(), make_plugin("follower", on_event=on_event)]
    result = ask(Agent(model=FakeModel(turn), tools=[FakeTool("t", asks)], plugins=plugins), "go")

    assert len(result.interrupts) == len(told) == 2
    assert all(use_id in str(event) for use_id, event in zip("AB", told, strict=True))
