"""The hook `on_event`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk.kits.events import MessageAdded, RunEnded
from ropewalk_testing import ScriptedModel

seen = []


class Diary:
    name = "diary"
    tier = "observer"  # its errors are logged and stop nobody

    @hookimpl
    async def on_event(self, event):
        if isinstance(event, MessageAdded):
            seen.append(event.message["role"])
        elif isinstance(event, RunEnded):
            seen.append(event.result.stop_reason)


agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Diary()], callback_handler=None)
agent("Hello?")
assert seen[-2:] == ["assistant", "end_turn"]
