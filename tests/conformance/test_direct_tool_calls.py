"""Direct calls of tools: `agent.tool.name(...)` (conformance 69 to 72)."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from ropewalk import ConcurrencyException, ToolContext, hookimpl, tool
from ropewalk_testing import assert_valid_history, turn, use


@tool
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def test_a_direct_call_records_four_messages(make_agent, shape):
    """Conformance 69."""
    agent, model = make_agent(["hello"], tools=[add])

    result = agent.tool.add(a=1, b=2)

    use_id = result["toolUseId"]
    assert result == {"toolUseId": use_id, "status": "success", "content": [{"text": "3"}]}
    prompt = 'agent.tool.add direct tool call.\nInput parameters: {"a": 1, "b": 2}\n'
    assert shape(agent.messages) == [
        ("user", [{"text": prompt}]),
        ("assistant", [{"toolUse": {"toolUseId": use_id, "name": "add", "input": {"a": 1, "b": 2}}}]),
        ("user", [{"toolResult": result}]),
        ("assistant", [{"text": "agent.tool.add was called."}]),
    ]
    assert model.calls == 0
    assert_valid_history(agent.messages)


def test_what_was_recorded_is_sent_with_the_next_call(ask, make_agent):
    """Conformance 69."""
    agent, model = make_agent(["hello"], tools=[add])
    agent.tool.add(a=1)

    assert str(ask(agent, "hi")) == "hello\n"
    assert len(model.requests[0].messages) == 5


def test_a_call_that_is_not_recorded_records_nothing(make_agent):
    """Conformance 69."""
    agent, _ = make_agent([], tools=[add])

    result = agent.tool.add(a=1, record_direct_tool_call=False)

    assert result["content"] == [{"text": "2"}]
    assert agent.messages == []


def test_the_agents_own_default_can_be_not_to_record(make_agent):
    """Conformance 69."""
    agent, _ = make_agent([], tools=[add], record_direct_tool_call=False)

    agent.tool.add(a=1)
    assert agent.messages == []
    agent.tool.add(a=1, record_direct_tool_call=True)
    assert len(agent.messages) == 4


def test_the_users_message_can_be_chosen(make_agent):
    """Conformance 69."""
    agent, _ = make_agent([], tools=[add])

    agent.tool.add(a=1, user_message_override="I have added.")

    assert agent.messages[0]["content"] == [{"text": "I have added."}]


@pytest.mark.parametrize("given", [{"a": "one"}, {}, {"b": 3}])
def test_a_failed_direct_call_is_recorded_as_an_error(make_agent, given):
    """Conformance 69."""
    agent, _ = make_agent([], tools=[add])

    assert agent.tool.add(**given)["status"] == "error"
    assert agent.messages[2]["content"][0]["toolResult"]["status"] == "error"
    assert_valid_history(agent.messages)


def test_arguments_that_are_no_json_are_recorded_as_json(make_agent):
    """Conformance 69."""

    @tool
    def count(items: set[int]) -> int:
        return len(items)

    agent, _ = make_agent([], tools=[count])

    assert agent.tool.count(items={1, 2})["content"] == [{"text": "2"}]
    json.dumps(agent.messages)


@pytest.mark.parametrize("name", ["sub", "ad", "Add", "__wrapped__"])
def test_a_direct_call_of_an_unknown_tool_is_an_attribute_error(make_agent, name):
    """Conformance 70."""
    agent, _ = make_agent([], tools=[add])

    with pytest.raises(AttributeError, match=f"{name}.*add"):
        getattr(agent.tool, name)

    assert not hasattr(agent.tool, name)


@pytest.mark.parametrize("own", ["look-up", "look_up"])
def test_dashes_are_written_as_underscores(make_agent, own):
    """Conformance 71."""
    agent, _ = make_agent([], tools=[tool(name=own)(lambda: "found")])

    assert agent.tool.look_up()["content"] == [{"text": "found"}]
    assert agent.messages[1]["content"][0]["toolUse"]["name"] == own


def test_a_direct_call_while_the_agent_runs_is_refused_unless_it_is_not_recorded(ask, make_agent):
    """Conformance 72."""
    seen = []

    @tool(context=True)
    def outer(tool_context: ToolContext) -> str:
        agent = tool_context.agent
        with pytest.raises(ConcurrencyException, match="busy"):
            agent.tool.add(a=1)

        seen.append(agent.tool.add(a=1, record_direct_tool_call=False)["content"])
        return "done"

    agent, _ = make_agent([use("outer", {}), "ok"], tools=[outer, add])

    assert str(ask(agent, "go")) == "ok\n"
    assert seen == [[{"text": "2"}]]
    assert len(agent.messages) == 4
    assert_valid_history(agent.messages)


async def test_a_refused_direct_call_leaves_the_run_and_the_agent_as_they_are(make_agent):
    """Conformance 72."""
    going_on = threading.Event()
    agent, model = make_agent([turn("slow", stall=going_on), "again"], tools=[add])
    running = asyncio.create_task(agent.invoke_async("go"))
    await model.wait_stalled()

    with pytest.raises(ConcurrencyException):
        await asyncio.to_thread(agent.tool.add, a=1)

    going_on.set()
    assert str(await running) == "slow\n"
    assert len(agent.messages) == 2
    assert (await asyncio.to_thread(agent.tool.add, a=1))["content"] == [{"text": "2"}]


def test_the_hooks_of_tool_calls_run_for_direct_calls(make_agent):
    class Doubler:
        name = "doubler"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return await call_next(call.with_input({**call.tool_use["input"], "b": 10}))

    agent, _ = make_agent([], tools=[add], plugins=[Doubler()])

    assert agent.tool.add(a=1)["content"] == [{"text": "11"}]


async def test_a_direct_call_works_inside_a_running_event_loop(make_agent):
    agent, _ = make_agent([], tools=[add])

    assert agent.tool.add(a=1)["content"] == [{"text": "2"}]
