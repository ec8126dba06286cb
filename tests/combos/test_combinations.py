"""Any plugins together: agents with every pair, and with all, do what an agent does."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest

from ropewalk import Agent
from ropewalk.kits.hooks import discovery
from ropewalk_testing import ScriptedModel, assert_valid_history, text, use

INSTALLED = sorted(
    name for name, plugin in discovery.registry().installed.items() if plugin.distribution.startswith("ropewalk-")
)
SETS = list(dict.fromkeys([(), *((name,) for name in INSTALLED), *combinations(INSTALLED, 2), tuple(INSTALLED)]))
PAUSES = 2
EXPECTED = [
    ("user", [{"text": "How much is 1 + 2?"}]),
    ("assistant", [{"text": "I add."}, {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1, "b": 2}}}]),
    ("user", [{"toolResult": {"toolUseId": "T1", "status": "success", "content": [{"text": "3"}]}}]),
    ("assistant", [{"text": "It is 3."}]),
]


class Add:
    """A tool object, so that no plugin is needed for it."""

    tool_name = "add"
    tool_spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        numbers = call.tool_use["input"]
        result = str(numbers["a"] + numbers["b"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": result}]}


def make_agent():
    model = ScriptedModel([[text("I add."), use("add", {"a": 1, "b": 2}, id="T1")], "It is 3."])
    return Agent(model=model, tools=[Add()])


async def events_of(agent):
    """The events of a run, which a plugin may pause at each boundary of its cycles."""
    events = [event async for event in agent.stream_async("How much is 1 + 2?")]
    for _ in range(PAUSES):
        if events[-1]["result"].stop_reason == "checkpoint":
            events += [event async for event in agent.stream_async(None)]

    return events


def seen(agent):
    return [(message["role"], message["content"]) for message in agent.messages]


@pytest.fixture
def only(ropewalk_env):
    """Restricts discovery to some plugins; on-demand ones are active then, too."""

    def restrict(names):
        ropewalk_env.setenv("ROPEWALK_PLUGINS", ",".join(["none", *names]))
        discovery.refresh()

    yield restrict
    discovery.refresh()


@pytest.mark.parametrize("names", SETS, ids=lambda names: "+".join(names) or "none")
def test_an_agent_runs_a_tool_and_answers(only, names):
    only(names)
    with make_agent() as agent:
        result = agent("How much is 1 + 2?")
        for _ in range(PAUSES):
            if result.stop_reason == "checkpoint":
                result = agent(None)

    assert sorted(plugin.name for plugin in agent.hooks.plugins) == sorted(names)
    assert (result.stop_reason, str(result)) == ("end_turn", "It is 3.\n")
    assert seen(agent) == EXPECTED
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("names", [(), tuple(INSTALLED)], ids=["none", "all"])
def test_a_stream_shows_the_same(only, names):
    only(names)

    async def follow():
        async with make_agent() as agent:
            return agent, await events_of(agent)

    agent, events = asyncio.run(follow())

    assert "".join(event["data"] for event in events if "data" in event) == "I add.It is 3."
    assert [event["message"] for event in events if "message" in event] == list(agent.messages[1:])
    assert seen(agent) == EXPECTED


def test_every_pair_is_there():
    assert len([names for names in SETS if len(names) == 2]) == len(INSTALLED) * (len(INSTALLED) - 1) // 2
    assert "testing" in INSTALLED
