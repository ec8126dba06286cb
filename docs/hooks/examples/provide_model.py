"""The hook `provide_model`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Parrots:
    """Model strings of the form `parrot:<words>`."""

    name = "parrots"

    @hookimpl
    def provide_model(self, spec):
        if spec is None or not spec.startswith("parrot:"):
            return None  # somebody else's

        words = spec.removeprefix("parrot:")
        return ScriptedModel(lambda request: words)


# An installed plugin that owns "model.parrot" (entry-point group ropewalk.parameters) need not stand in plugins=.
agent = Agent(model="parrot:hello", plugins=[Parrots()], callback_handler=None)
assert str(agent("Say something.")) == "hello\n"
