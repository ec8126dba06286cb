"""The hook `provide_method`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Callbacks:
    """Gives `agent.add_hook` its meaning."""

    name = "callbacks"

    @hookimpl
    def provide_method(self, name, agent):
        if name != "add_hook":
            return None

        def add_hook(callback, event_type=None, *, order=0):
            cell = agent.plugin_state(self.name)
            cell.set("callbacks", [*cell.get("callbacks", []), callback.__name__])

        return add_hook


agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Callbacks()], callback_handler=None)
agent.add_hook(print)
assert agent.plugin_state("callbacks").get("callbacks") == ["print"]
