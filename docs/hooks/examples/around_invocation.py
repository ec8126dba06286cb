"""The hook `around_invocation`."""

from __future__ import annotations

from ropewalk import Agent, Denied, hookimpl
from ropewalk_testing import ScriptedModel


class OfficeHours:
    """Refuses calls outside office hours; nothing of them is stored."""

    name = "office-hours"

    def __init__(self, clock):
        self.clock = clock

    @hookimpl
    async def around_invocation(self, invocation, call_next):
        if not 9 <= self.clock() < 17:
            return Denied("We are closed.")

        return await call_next(invocation)


hours = iter([8, 9])
agent = Agent(model=ScriptedModel(["Hello."]), plugins=[OfficeHours(hours.__next__)], callback_handler=None)
assert str(agent("Anybody there?")) == "We are closed.\n"
assert list(agent.messages) == []
assert str(agent("And now?")) == "Hello.\n"
