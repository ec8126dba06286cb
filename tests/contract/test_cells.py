"""What a plugin remembers of an agent lives in the kernel's cell, so that one instance serves many agents at once."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel, use

AGENTS = 5


class Echo:
    tool_name = "echo"
    tool_spec = {"name": "echo", "description": "Echo.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        await asyncio.sleep(0)
        text = str(call.tool_use["input"]["n"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


class Counter:
    """Counts an agent's tool calls and remembers the last, and denies those above its limit."""

    name = "counter"

    def __init__(self, limit):
        self.limit = limit

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        cell = agent.plugin_state(self.name)
        calls = cell.get("calls", 0) + 1
        cell.set("calls", calls)
        await asyncio.sleep(0)  # another agent's turn
        cell.set("last", call.tool_use["input"]["n"])
        if calls > self.limit:
            return {"toolUseId": call.tool_use["toolUseId"], "status": "error", "content": [{"text": "enough"}]}

        return await call_next(call)


def make_agent(counter, number, uses):
    turns = [use("echo", {"n": number * 100 + i}, id=f"T{i}") for i in range(uses)]
    model = ScriptedModel([*turns, f"agent {number} is done"])
    return Agent(model=model, tools=[Echo()], plugins=[counter], callback_handler=None)


def statuses(agent):
    return [block["toolResult"]["status"] for m in agent.messages for block in m["content"] if "toolResult" in block]


async def test_one_instance_keeps_the_states_of_agents_that_run_at_once_apart():
    counter = Counter(limit=3)
    agents = [make_agent(counter, number, uses=number + 1) for number in range(AGENTS)]

    results = await asyncio.gather(*(agent.invoke_async("Go.") for agent in agents))

    assert [str(result) for result in results] == [f"agent {number} is done\n" for number in range(AGENTS)]
    for number, agent in enumerate(agents):
        assert agent.plugin_state("counter").get() == {"calls": number + 1, "last": number * 100 + number}
        assert statuses(agent) == ["success"] * min(3, number + 1) + ["error"] * max(0, number - 2)

    assert vars(counter) == {"limit": 3}


def test_agents_in_several_threads_are_kept_apart_as_well():
    counter = Counter(limit=3)
    agents = [make_agent(counter, number, uses=2) for number in range(AGENTS)]

    async def run_all():
        return await asyncio.gather(*(asyncio.to_thread(agent, "Go.") for agent in agents))

    asyncio.run(run_all())

    assert [agent.plugin_state("counter").get() for agent in agents] == [
        {"calls": 2, "last": number * 100 + 1} for number in range(AGENTS)
    ]


async def test_a_cell_belongs_to_one_plugin_and_holds_json():
    agent = make_agent(Counter(limit=1), 0, uses=1)
    await agent.invoke_async("Go.")

    assert agent.plugin_state("other").get() == {}
    with pytest.raises(ValueError, match="not JSON"):
        agent.plugin_state("counter").set("calls", object())
