"""The hook `on_delta`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk.kits.events import TextDelta
from ropewalk_testing import ScriptedModel, turn

pieces = []


class Ticker:
    name = "ticker"
    tier = "observer"

    @hookimpl
    def on_delta(self, event):
        if isinstance(event, TextDelta):
            pieces.append(event.text)


agent = Agent(model=ScriptedModel([turn("Hello there.", deltas=3)]), plugins=[Ticker()], callback_handler=None)
agent("Hello?")
assert (len(pieces), "".join(pieces)) == (3, "Hello there.")
