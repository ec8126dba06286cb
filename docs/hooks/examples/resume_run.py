"""The hook `resume_run`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk.kits.suspension import CheckpointException
from ropewalk_testing import ScriptedModel, use


@tool
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}"


class Numbered:
    """Checkpoints that are numbers; each is good once, at the place where it was given out."""

    name = "numbered"

    @hookimpl
    async def emit_checkpoint(self, position, cycle_index):
        return {"number": 2 * cycle_index + (position == "after_tools")}

    @hookimpl
    async def resume_run(self, payload, pause):
        if pause is None or payload != pause.checkpoint:
            raise CheckpointException(f"{payload} is not where the run waits: pass the checkpoint of the last result")

        return True


agent = Agent(
    model=ScriptedModel([use("greet", {"name": "Ann"}), "Done."]),
    tools=[greet],
    plugins=[Numbered()],
    callback_handler=None,
)
first = agent("Greet Ann.").checkpoint
second = agent({"checkpointResume": first}).checkpoint
refused = None
try:
    agent({"checkpointResume": first})
except CheckpointException as error:
    refused = str(error)

assert refused is not None
assert "is not where the run waits" in refused
assert agent({"checkpointResume": second}).stop_reason == "end_turn"
