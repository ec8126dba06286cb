"""The hook `around_model_call`."""

from __future__ import annotations

from dataclasses import replace

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class TimeOfDay:
    """Tells the model the time, and leaves the history as it is."""

    name = "time-of-day"

    @hookimpl
    async def around_model_call(self, request, call_next):
        note = {"text": "It is noon."}
        return await call_next(replace(request, system=(*request.system, note)))


model = ScriptedModel(["Lunch time."])
agent = Agent(model=model, plugins=[TimeOfDay()], callback_handler=None)
agent("What now?")
assert model.last_request.system[-1] == {"text": "It is noon."}
assert agent.system_prompt is None
