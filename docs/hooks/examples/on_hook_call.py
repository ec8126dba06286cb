"""The hook `on_hook_call`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Shouting:
    name = "shouting"

    @hookimpl
    async def around_model_call(self, request, call_next):
        return await call_next(request)


class Stopwatch:
    """Adds up how long each plugin took."""

    name = "stopwatch"
    tier = "observer"

    def __init__(self):
        self.seconds = {}

    @hookimpl
    def on_hook_call(self, call):
        self.seconds[call.plugin] = self.seconds.get(call.plugin, 0.0) + call.seconds


stopwatch = Stopwatch()
agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Shouting(), stopwatch], callback_handler=None)
agent("Hello?")
assert stopwatch.seconds["shouting"] > 0
