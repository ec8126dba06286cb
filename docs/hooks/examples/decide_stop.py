"""The hook `decide_stop`."""

from __future__ import annotations

from ropewalk import Agent, Stop, hookimpl, tool
from ropewalk_testing import ScriptedModel, use


@tool
def look() -> str:
    """Looks around."""
    return "nothing"


class TwoTurns:
    """Stops before the model is called a third time."""

    name = "two-turns"

    @hookimpl
    async def decide_stop(self, cycle):
        return Stop("limit_turns", {"turns": cycle.index}) if cycle.index == 2 else None


model = ScriptedModel([use("look"), use("look"), use("look")])
agent = Agent(model=model, tools=[look], plugins=[TwoTurns()], callback_handler=None)
result = agent("Find it.")
assert (result.stop_reason, result.state["turns"], model.calls) == ("limit_turns", 2, 2)
