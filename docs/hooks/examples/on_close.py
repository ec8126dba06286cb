"""The hook `on_close`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel

closed = []


class Connection:
    name = "connection"

    @hookimpl
    async def on_close(self, agent):
        closed.append(agent.name)


with Agent(model=ScriptedModel(["Hello."]), name="one", plugins=[Connection()], callback_handler=None) as agent:
    agent("Hello?")
    assert closed == []

assert closed == ["one"]
