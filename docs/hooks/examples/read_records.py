"""The hook `read_records`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk.kits.log.fold import LogState, fold
from ropewalk_testing import ScriptedModel


class Kept:
    """Keeps the log in this process; an agent that is built later goes on where it ends."""

    name = "kept"

    def __init__(self):
        self.records = []

    @hookimpl
    def read_records(self):
        return fold(LogState(), self.records) if self.records else None

    @hookimpl
    async def write_records(self, records):
        self.records += records


kept = Kept()
Agent(model=ScriptedModel(["Hello, Ann."]), plugins=[kept], callback_handler=None)("I am Ann.")
model = ScriptedModel(["You are Ann."])
agent = Agent(model=model, plugins=[kept], callback_handler=None)
assert [message["role"] for message in agent.messages] == ["user", "assistant"]
agent("Who am I?")
assert len(model.requests[0].messages) == 3
