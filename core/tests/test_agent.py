"""What an agent keeps and what it costs."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest
from kernel_fakes import FakeModel, FakeTool, LoopingModel, collect, make_plugin, problems, use

from ropewalk import Agent, ToolDefinitionError


async def quick(call):
    return "ok"


async def trim(self, request, reason):
    from ropewalk import HistoryEdit

    if reason == "after_invocation" and len(request.ids) > 4:
        return [HistoryEdit(request.ids[0], request.ids[-5])]

    return None


@pytest.mark.parametrize("entry", ["awaited", "streamed", "called"])
def test_a_thousand_runs_leave_nothing_behind(entry):
    agent = Agent(model=LoopingModel(), tools=[FakeTool("step", quick)], plugins=[make_plugin(manage_context=trim)])

    async def runs(count):
        for _ in range(count):
            if entry == "streamed":
                await collect(agent, "go")
            else:
                await agent.invoke_async("go")

    def go(count):
        if entry == "called":
            for _ in range(count):
                agent("go")
        else:
            asyncio.run(runs(count))

    go(20)
    gc.collect()
    before = len(gc.get_objects())
    go(1000)
    gc.collect()

    assert len(gc.get_objects()) - before < 100
    assert len(agent.messages) <= 5
    assert problems(agent.messages) == []


@pytest.mark.usefixtures("_no_collector")
def test_runs_make_no_cycles_for_the_collector():
    agent = Agent(model=LoopingModel(), tools=[FakeTool("step", quick)], plugins=[make_plugin(manage_context=trim)])

    async def runs(count):
        for _ in range(count):
            await agent.invoke_async("go")

    asyncio.run(runs(5))
    gc.collect()

    async def counted():
        await runs(50)
        return gc.collect()

    assert asyncio.run(counted()) < 50


def test_ten_thousand_cycles_cost_the_same_from_the_first_to_the_last():
    calls = {}
    count = 0

    def tick(frame, event, argument):
        nonlocal count
        if event == "call":
            count += 1

    def watch(number):
        calls[number] = count

    model = LoopingModel(every=10_001, watch=watch)
    agent = Agent(model=model, tools=[FakeTool("step", quick)])

    async def run():
        gc.collect()
        gc.disable()  # whoever is told of collections would be counted too
        sys.setprofile(tick)
        try:
            return await agent.invoke_async("go")
        finally:
            sys.setprofile(None)
            gc.enable()

    result = asyncio.run(run())

    assert (result.stop_reason, result.metrics.cycle_count) == ("end_turn", 10_001)
    assert len(agent.messages) == 20_002
    per_cycle = [calls[at + 1] - calls[at] for at in (100, 1000, 5000, 9999)]
    assert len(set(per_cycle)) == 1
    assert calls[10_000] - calls[9_900] == calls[200] - calls[100]


def test_metrics_belong_to_one_run():
    agent = Agent(model=FakeModel(use("t"), "x", "y"), tools=[FakeTool("t", quick)])
    first = agent("go")
    summary = first.metrics.get_summary()
    second = agent("more")

    assert first.metrics.get_summary() == summary
    assert (summary["total_cycles"], summary["model_calls"], summary["accumulated_usage"]["totalTokens"]) == (2, 2, 10)
    assert summary["tool_usage"]["t"]["success_rate"] == 1.0
    assert second.metrics.cycle_count == 1
    assert second.metrics.accumulated_metrics == {"latencyMs": 7}


def test_messages_are_read_only_during_a_run_and_for_others_afterwards():
    def edits(call):
        call.agent.messages.append({"role": "user", "content": [{"text": "sneaky"}]})

    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "x", "y"), tools=[FakeTool("t", edits)])
    agent("go")
    agent.messages += [{"role": "user", "content": [{"text": "fine"}]}]
    agent("more")

    assert "while the agent runs" in str(agent.messages[2])
    assert problems(agent.messages) == []
    assert "fine" in str(agent.messages[4])


@pytest.mark.parametrize("entries", [FakeTool("t"), "path.py"], ids=["tool", "text"])
def test_one_tool_that_is_no_list_is_refused_with_a_sentence(entries):
    with pytest.raises(ToolDefinitionError, match="pass a list"):
        Agent(model=FakeModel(), tools=entries)


def test_a_state_that_is_no_dict_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="give a dict with text keys"):
        Agent(model=FakeModel(), state=3)
