"""The hook `manage_context`."""

from __future__ import annotations

from ropewalk import Agent, HistoryEdit, hookimpl
from ropewalk_testing import ScriptedModel


class Forgetful:
    """Keeps the last question and answer, and drops what was before."""

    name = "forgetful"

    @hookimpl
    async def manage_context(self, request, reason):
        if reason != "after_invocation" or len(request.ids) <= 2:
            return None

        return [HistoryEdit(first=request.ids[0], last=request.ids[-3], reason="too old")]


model = ScriptedModel(["One.", "Two.", "Three."])
agent = Agent(model=model, plugins=[Forgetful()], callback_handler=None)
for question in ("1?", "2?", "3?"):
    agent(question)

assert [message["content"][0]["text"] for message in agent.messages] == ["3?", "Three."]
