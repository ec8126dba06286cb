"""Plugins made of callbacks and tools (line 192)."""

from __future__ import annotations

import pytest

from ropewalk import AgentInitializedEvent, BeforeModelCallEvent, MissingPluginError, Plugin, PluginError, hook, tool
from ropewalk_testing import use


class Clock(Plugin):
    name = "clock"

    def __init__(self):
        self.seen = []

    @hook
    def on_start(self, event: AgentInitializedEvent):
        self.seen.append("agent")

    @hook
    async def on_model(self, event: BeforeModelCallEvent):
        self.seen.append("model")

    @tool
    def what_time(self) -> str:
        """Tell the time."""
        self.seen.append("tool")
        return "noon"


def test_hooks_and_tools_of_a_plugin_are_registered(ask, make_agent, tool_results, result_text):
    clock = Clock()
    agent, _ = make_agent([use("what_time", {}, id="A"), "It is noon."], plugins=[clock])

    assert agent.tool_names == ["what_time"]
    assert str(ask(agent, "What time is it?")) == "It is noon.\n"
    assert clock.seen == ["agent", "model", "tool", "model"]
    assert [result_text(result) for result in tool_results(agent.messages)] == ["noon"]


def test_a_synchronous_init_agent_is_called_when_the_agent_is_made(make_agent):
    class Early(Plugin):
        name = "early"

        def init_agent(self, agent):
            agent.state.set("early", agent.name)

    agent, _ = make_agent(["Hello."], plugins=[Early()], name="Ada")

    assert agent.state.get("early") == "Ada"


def test_an_asynchronous_init_agent_is_awaited_once_before_the_first_run(ask, make_agent):
    class Late(Plugin):
        name = "late"

        async def init_agent(self, agent):
            agent.state.set("inits", (agent.state.get("inits") or 0) + 1)
            agent.add_hook(self.on_model, BeforeModelCallEvent)

        def on_model(self, event):
            event.agent.state.set("calls", (event.agent.state.get("calls") or 0) + 1)

    agent, _ = make_agent(["Hello.", "Hello."], plugins=[Late()])
    ask(agent, "Hi.")
    ask(agent, "Hi.")

    assert agent.state.get() == {"inits": 1, "calls": 2}


def test_two_plugins_of_one_name_are_refused(make_agent):
    with pytest.raises(PluginError, match="'clock'"):
        make_agent(["Hello."], plugins=[Clock(), Clock()])


def test_two_plugins_of_one_name_are_a_value_error(make_agent):
    with pytest.raises(ValueError, match="'clock'"):
        make_agent(["Hello."], plugins=[Clock(), Clock()])


def test_one_plugin_object_serves_several_agents(ask, make_agent):
    clock = Clock()
    agents = [make_agent(["Hello."], plugins=[clock])[0] for _ in range(2)]
    for agent in agents:
        ask(agent, "Hi.")

    assert clock.seen == ["agent", "agent", "model", "model"]


def test_hooks_without_the_plugin_that_calls_them_are_an_error_that_names_it(make_agent):
    with pytest.raises(MissingPluginError, match="hooks"):
        make_agent(["Hello."], plugins=[Clock(), "-hooks"])
