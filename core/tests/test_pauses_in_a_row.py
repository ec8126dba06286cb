"""A run that goes on from a pause, or from where its process ended, is stopped or asked again before it gets far."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, results_of, texts, use

from ropewalk import Agent, current_run
from ropewalk.kits.log.fold import LogState, fold

MAY_HAVE_RUN = "Tool execution cancelled while it ran; it may or may not have taken effect"


async def quick(call):
    return "done for good"


def answers(result):
    return [{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in result.interrupts]


def asking_at_the_end(name):
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        current_run().interrupt(name, where=name)
        return result

    return make_plugin(name, around_invocation=around_invocation)


async def asks_after_the_call(self, call, call_next):
    result = await call_next(call)
    current_run().interrupt("keep it?", of=call.tool_use["toolUseId"])
    return result


def test_several_plugins_may_ask_at_the_end_of_one_run():
    plugins = [asking_at_the_end(name) for name in ("outer", "middle", "inner")]
    agent = Agent(model=FakeModel("the answer"), plugins=plugins)
    result = agent("go")
    asked = []
    while result.stop_reason == "interrupt" and len(asked) < 5:
        asked += [each.name for each in result.interrupts]
        result = agent(answers(result))

    assert asked == ["inner", "middle", "outer"]
    assert result.stop_reason == "end_turn"
    assert texts(result.message) == ["the answer"]


async def test_a_tool_that_had_run_before_a_pause_keeps_its_result_when_the_resumed_run_is_cancelled():
    async def around_tools(self, batch, call_next, agent):
        if current_run().answers:
            agent.cancel()

        return await call_next(batch)

    tool = FakeTool("t", quick)
    watcher = make_plugin("watcher", around_tools=around_tools, around_tool_call=asks_after_the_call)
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "x"), tools=[tool], plugins=[watcher])
    stopped = await agent.invoke_async(answers(await agent.invoke_async("go")))

    assert stopped.stop_reason == "cancelled"
    assert tool.calls == 1
    assert results_of(agent.messages) == {"T": "done for good"}


@pytest.mark.parametrize("swallows", [False, True], ids=["ends", "goes on"])
async def test_its_result_is_kept_too_when_a_hook_around_it_is_interrupted(swallows):
    waits = asyncio.Event()

    async def around_tool_call(self, call, call_next):
        if current_run().answers:
            waits.set()
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                if not swallows:
                    raise

        return await asks_after_the_call(self, call, call_next)

    tool = FakeTool("t", quick)
    watcher = make_plugin("watcher", around_tool_call=around_tool_call)
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "x"), tools=[tool], plugins=[watcher])
    result = await agent.invoke_async("go")
    going_on = asyncio.create_task(agent.invoke_async(answers(result)))
    await asyncio.wait_for(waits.wait(), 20)
    agent.cancel()
    stopped = await asyncio.wait_for(going_on, 20)

    assert stopped.stop_reason == "cancelled"
    assert tool.calls == 1
    assert results_of(agent.messages) == {"T": "done for good"}


# -- logs that end somewhere ---------------------------------------------------------------------------------------


async def _records_of(agent_plugins, *turns):
    kept = []

    async def write_records(self, records):
        kept.extend(records)

    plugins = [make_plugin("writer", write_records=write_records), *agent_plugins]
    agent = Agent(model=FakeModel(*turns), tools=[FakeTool("t", quick)], plugins=plugins)
    await agent.invoke_async("go")
    return kept


def _until(records, kind):
    return records[: 1 + next(n for n, record in enumerate(records) if record.kind == kind)]


async def test_a_call_that_a_crash_cut_off_is_not_said_to_have_never_started():
    records = _until(await _records_of([], use("t", tool_use_id="T"), "x"), "tool_started")
    tool = FakeTool("t", quick)
    agent = Agent(model=FakeModel("x"), tools=[tool])
    agent.restore(fold(LogState(), records))
    agent.cancel()
    result = await agent.invoke_async()

    assert result.stop_reason == "cancelled"
    assert tool.calls == 0
    assert results_of(agent.messages) == {"T": MAY_HAVE_RUN}


async def test_a_pause_is_over_where_the_log_ends_behind_the_results_of_its_calls():
    paused = await _records_of([make_plugin("w", around_tool_call=asks_after_the_call)], use("t", tool_use_id="T"))
    whole = await _records_of([], use("t", tool_use_id="T"), "x")
    closing = next(r for r in whole if r.kind == "message_appended" and "toolResultOf" in str(r.data))
    agent = Agent(model=FakeModel("x"), tools=[FakeTool("t", quick)])
    agent.restore(fold(LogState(), [*paused, closing]))

    assert agent.suspension is None
    assert (await agent.invoke_async("go on")).stop_reason == "end_turn"
    assert problems(agent.messages) == []


async def test_a_message_whose_write_failed_is_not_stored_twice_when_a_hook_asks_what_to_do():
    fails = [True]

    async def write_records(self, records):
        if fails and any(r.kind == "message_appended" and r.data["message"]["role"] == "assistant" for r in records):
            fails.clear()
            raise OSError("disk full")

    async def around_invocation(self, invocation, call_next):
        try:
            return await call_next(invocation)
        except OSError:
            current_run().interrupt("the disk is full: go on?")
            raise

    tool = FakeTool("t", quick)
    plugins = [
        make_plugin("writer", write_records=write_records),
        make_plugin("w", around_invocation=around_invocation),
    ]
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "x"), tools=[tool], plugins=plugins)
    result = await agent.invoke_async("go")
    result = await agent.invoke_async(answers(result))

    assert result.stop_reason == "end_turn"
    assert problems(agent.messages) == []
    assert results_of(agent.messages) == {"T": "done for good"}
