"""The hook `on_agent_ready`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Greeter:
    name = "greeter"

    @hookimpl
    def on_agent_ready(self, agent):
        agent.plugin_state(self.name).set("tools", agent.tool_names)


agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Greeter()], callback_handler=None)
assert agent.plugin_state("greeter").get("tools") == []
