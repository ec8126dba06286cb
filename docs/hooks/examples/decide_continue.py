"""The hook `decide_continue`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Thorough:
    """Asks for a source when the answer names none."""

    name = "thorough"

    @hookimpl
    async def decide_continue(self, message):
        if any("Source:" in block.get("text", "") for block in message["content"]):
            return None

        return [{"text": "Name your source."}]


model = ScriptedModel(["42.", "42. Source: a book."])
agent = Agent(model=model, plugins=[Thorough()], callback_handler=None)
assert str(agent("What is the answer?")) == "42. Source: a book.\n"
assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant"]
