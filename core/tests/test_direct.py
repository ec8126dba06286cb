from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems

from ropewalk import Agent, AgentClosedError, ConcurrencyException, Refuse
from ropewalk.kits.calls.invocation import REENTRANT
from ropewalk.kits.log.fold import LogState, fold


def texts(message):
    return [block["text"] for block in message["content"] if "text" in block]


def test_a_direct_call_records_four_messages():
    agent = Agent(model=FakeModel("hi"), tools=[FakeTool("add", lambda call: call.tool_use["input"]["a"] + 1)])

    result = agent.tool.add(a=1)

    assert result["status"] == "success"
    assert result["content"] == [{"text": "2"}]
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant"]
    assert texts(agent.messages[0]) == ['agent.tool.add direct tool call.\nInput parameters: {"a": 1}\n']
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"a": 1}
    assert agent.messages[2]["content"] == [{"toolResult": result}]
    assert texts(agent.messages[3]) == ["agent.tool.add was called."]
    assert problems(agent.messages) == []


def test_the_user_message_of_a_direct_call_can_be_given():
    agent = Agent(model=FakeModel("hi"), tools=[FakeTool("add")])
    agent.tool.add(user_message_override="I asked for this")

    assert texts(agent.messages[0]) == ["I asked for this"]


@pytest.mark.parametrize("at", ["the agent", "the call"])
def test_a_direct_call_can_leave_no_trace(at):
    agent = Agent(tools=[FakeTool("add")], record_direct_tool_call=at != "the agent")
    agent.tool.add(**({"record_direct_tool_call": False} if at == "the call" else {}))

    assert agent.messages == []


def test_a_dash_in_a_name_is_an_underscore_in_a_direct_call():
    agent = Agent(tools=[FakeTool("add-up")])

    assert agent.tool.add_up()["status"] == "success"


def test_an_unknown_tool_is_an_attribute_error_that_lists_the_tools():
    agent = Agent(tools=[FakeTool("add")])

    with pytest.raises(AttributeError, match="no tool 'sub': its tools are add"):
        agent.tool.sub()


def test_a_tool_that_raises_is_an_error_result_of_the_direct_call():
    def fail(call):
        raise ValueError("too small")

    agent = Agent(tools=[FakeTool("add", fail)])
    result = agent.tool.add()

    assert result["status"] == "error"
    assert result["content"] == [{"text": "Error: too small"}]


def test_hooks_wrap_direct_calls_and_their_errors_reach_the_caller():
    async def deny(self, call, call_next):
        raise PermissionError("not you")

    tool = FakeTool("add")
    agent = Agent(tools=[tool], plugins=[make_plugin(around_tool_call=deny)])

    with pytest.raises(PermissionError, match="not you"):
        agent.tool.add()

    assert tool.calls == 0
    assert agent.messages == []
    assert str(Agent(model=FakeModel("free"))("is it?")) == "free\n"


def test_the_gates_guard_direct_calls():
    async def intervene(self, moment, subject):
        return Refuse("no adding") if moment == "before_tool_call" else None

    tool = FakeTool("add")
    agent = Agent(tools=[tool], plugins=[make_plugin(intervene=intervene)])

    assert agent.tool.add()["content"] == [{"text": "DENIED: no adding"}]
    assert tool.calls == 0


async def test_a_direct_call_on_a_busy_agent_is_refused_unless_it_is_not_recorded():
    started, release = asyncio.Event(), asyncio.Event()

    async def wait(call):
        started.set()
        await release.wait()
        return "waited"

    model = FakeModel({"use": "wait", "input": {}, "id": "W"}, "done")
    agent = Agent(model=model, tools=[FakeTool("wait", wait), FakeTool("add")])
    run = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    with pytest.raises(ConcurrencyException, match="record_direct_tool_call=False"):
        await asyncio.to_thread(agent.tool.add)

    assert (await asyncio.to_thread(agent.tool.add, record_direct_tool_call=False))["status"] == "success"
    release.set()
    assert str(await run) == "done\n"
    assert problems(agent.messages) == []


def test_a_closed_agent_runs_no_tool():
    agent = Agent(tools=[FakeTool("add")])
    agent.close()

    with pytest.raises(AgentClosedError):
        agent.tool.add()


@pytest.mark.parametrize("failing", ["its first records", "its messages", "what a run beside it has left"])
async def test_an_agent_is_free_again_when_records_of_a_direct_call_cannot_be_written(failing):
    started, release = threading.Event(), threading.Event()
    full, log = [True], []

    def wait(call):
        started.set()
        release.wait(10)
        return "waited"

    async def admit(self, options):
        return REENTRANT

    async def write_records(self, records):
        if full and any(due(record) for record in records if not record.path):
            raise OSError("disk full")

        log.extend(records)

    def due(record):
        if failing == "its first records":
            return True

        if failing == "its messages":
            return "direct tool call" in record.to_json()

        return record.kind == "history_spliced" and "beside" in record.to_json()

    agent = Agent(
        model=FakeModel("also", "more"),
        tools=[FakeTool("wait", wait)],
        plugins=[make_plugin(admit=admit, write_records=write_records)],
    )
    direct = asyncio.create_task(asyncio.to_thread(agent.tool.wait))
    if failing != "its first records":
        assert await asyncio.to_thread(started.wait, 10)
        assert str(await agent.invoke_async("beside")) == "also\n"
        release.set()

    with pytest.raises(OSError, match="disk full"):
        await asyncio.wait_for(direct, 10)

    assert agent._runs == []
    assert problems(agent.messages) == []
    full.clear()
    assert (await agent.invoke_async("go on")).stop_reason == "end_turn"
    assert fold(LogState(), log).messages == agent.messages


def test_followers_are_told_of_the_four_messages():
    told = []

    async def on_event(self, event):
        told.append(event.as_dict()["message"]["role"])

    agent = Agent(tools=[FakeTool("add")], plugins=[make_plugin(on_event=on_event)])
    agent.tool.add()

    assert told == ["user", "assistant", "user", "assistant"]


def test_an_agent_whose_tool_was_called_directly_is_freed_at_once():
    gc.collect()
    gc.disable()
    try:
        agent = Agent(tools=[FakeTool("add")])
        agent.tool.add()
        gone = weakref.ref(agent)
        del agent
        for _ in range(200):  # the loop's thread may need a moment to let go of its frame
            if gone() is None:
                break

            time.sleep(0.01)

        assert gone() is None
    finally:
        gc.enable()
