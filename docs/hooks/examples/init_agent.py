"""The hook `init_agent`."""

from __future__ import annotations

import asyncio

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Profile:
    """Loads what it needs from somewhere that has to be awaited."""

    name = "profile"

    @hookimpl
    async def init_agent(self, agent):
        await asyncio.sleep(0)  # a request to a service, say
        agent.plugin_state(self.name).set("user", "Ada")


agent = Agent(model=ScriptedModel(["Hello.", "Again."]), plugins=[Profile()], callback_handler=None)
assert "user" not in agent.plugin_state("profile")
agent("Hello?")
assert agent.plugin_state("profile").get("user") == "Ada"
agent("And again?")  # it is not asked a second time
