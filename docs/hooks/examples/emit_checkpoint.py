"""The hook `emit_checkpoint`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk_testing import ScriptedModel, use


@tool
def price(item: str) -> int:
    """Price of an item."""
    return 7 if item == "tea" else 9


class LookFirst:
    """Pauses a run when its tools have run, before the model reads their results."""

    name = "look-first"

    @hookimpl
    async def emit_checkpoint(self, position, cycle_index):
        return {"cycle": cycle_index} if position == "after_tools" else None

    @hookimpl
    async def resume_run(self, payload, pause):
        return True if pause is not None and payload == pause.checkpoint else None


model = ScriptedModel([use("price", {"item": "tea"}), "It costs 7."])
agent = Agent(model=model, tools=[price], plugins=[LookFirst()], callback_handler=None)
result = agent("What is tea?")
assert (result.stop_reason, result.checkpoint, model.calls) == ("checkpoint", {"cycle": 0}, 1)
assert agent.messages[-1]["content"][0]["toolResult"]["content"] == [{"text": "7"}]
assert str(agent({"checkpointResume": result.checkpoint})) == "It costs 7.\n"
