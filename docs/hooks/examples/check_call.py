"""The hook `check_call`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class ShortQuestions:
    name = "short-questions"

    @hookimpl
    def check_call(self, options):
        if isinstance(options.prompt, str) and len(options.prompt) > 20:
            raise ValueError("a question has at most 20 characters: ask for less")


model = ScriptedModel(["Hello."])
agent = Agent(model=model, plugins=[ShortQuestions()], callback_handler=None)
try:
    agent("A question that goes on and on")
except ValueError as error:
    refused = str(error)

assert refused.startswith("a question has at most 20 characters")
assert (model.calls, list(agent.messages)) == (0, [])
