"""The hook `provide_tools`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk_testing import ScriptedModel


@tool
def roll() -> int:
    """Rolls a die, fairly."""
    return 4


class Dice:
    name = "dice"

    @hookimpl
    def provide_tools(self):
        return [roll]


agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Dice()], callback_handler=None)
assert agent.tool_names == ["roll"]
