"""Hooks may write to what they are given: the log, the history and what a pause keeps do not change behind the run."""

from __future__ import annotations

import json

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, texts, use

from ropewalk import Agent, Refuse, current_run
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record

NOTE = {"text": "a note"}


async def quick(call):
    return "ok"


async def on_each_call(self, call, call_next):
    result = await call_next(call)
    result["content"].append(NOTE)
    return result


async def on_the_batch(self, batch, call_next):
    outcome = await call_next(batch)
    for result in outcome.results:
        result["content"].append(NOTE)

    return outcome


async def on_each_call_asking(self, call, call_next):
    result = await on_each_call(self, call, call_next)
    current_run().interrupt("keep it?", of=call.tool_use["toolUseId"])
    return result


async def on_the_batch_asking(self, batch, call_next):
    outcome = await on_the_batch(self, batch, call_next)
    batch.interrupt("keep it?")
    return outcome


HOOKS = {"around_tool_call": (on_each_call, on_each_call_asking), "around_tools": (on_the_batch, on_the_batch_asking)}


def new_agent(*plugins, kept=None):
    async def write_records(self, records):
        if kept is not None:
            kept.extend(Record.from_dict(json.loads(record.to_json())) for record in records)

    turns = [[use("a", tool_use_id="A"), use("b", tool_use_id="B")], "done"]
    tools = [FakeTool("a", quick), FakeTool("b", quick)]
    plugins = [make_plugin("writer", write_records=write_records), *plugins]
    return Agent(model=FakeModel(*turns), tools=tools, plugins=plugins)


def notes(agent):
    results = [b["toolResult"] for m in agent.messages for b in m["content"] if "toolResult" in b]
    return [result["content"].count(NOTE) for result in results]


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_result_that_a_hook_has_written_to_is_the_same_in_the_log(hook):
    kept = []
    agent = new_agent(make_plugin("notes", **{hook: HOOKS[hook][0]}), kept=kept)
    await agent.invoke_async("go")

    assert notes(agent) == [1, 1]
    assert fold(LogState(), kept).messages == list(agent.messages)


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_that_writes_and_then_asks_has_written_once(hook):
    agent = new_agent(make_plugin("notes", **{hook: HOOKS[hook][1]}))
    result = await agent.invoke_async("go")
    for _ in range(2):
        if result.stop_reason == "interrupt":
            answers = [{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in result.interrupts]
            result = await agent.invoke_async(answers)

    assert result.stop_reason == "end_turn"
    assert notes(agent) == [1, 1]


async def test_the_message_of_a_result_is_the_hooks_own():
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        result.message["content"][:] = [{"text": "other"}]
        return result

    kept = []
    agent = new_agent(make_plugin("other", around_invocation=around_invocation), kept=kept)
    result = await agent.invoke_async("go")

    assert texts(result.message) == ["other"]
    assert texts(agent.messages[-1]) == ["done"]
    assert fold(LogState(), kept).messages == list(agent.messages)
    assert problems(agent.messages) == []


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_pause_keeps_nothing_that_a_policy_refuses(hook):
    async def intervene(self, moment, subject, agent):
        return Refuse("hidden") if moment == "after_tool_call" and NOTE in subject["content"] else None

    async def asks(self, call, call_next):
        if call.tool_use["toolUseId"] == "B":
            current_run().interrupt("may I?", of="B")

        return await call_next(call)

    kept = []
    plugins = [make_plugin("law", tier="policy", intervene=intervene), make_plugin("notes", **{hook: HOOKS[hook][0]})]
    agent = new_agent(*plugins, make_plugin("asks", around_tool_call=asks), kept=kept)
    result = await agent.invoke_async("go")

    assert result.stop_reason == "interrupt"
    assert NOTE["text"] not in json.dumps(agent.suspension.to_dict())
    assert NOTE["text"] not in json.dumps([record.to_dict() for record in kept])

    answers = [{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in result.interrupts]
    assert (await agent.invoke_async(answers)).stop_reason == "end_turn"
    assert notes(agent) == [0, 0]
