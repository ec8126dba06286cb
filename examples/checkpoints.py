"""A run that stops at each boundary and goes on in a new agent, from text alone: `python examples/checkpoints.py`."""

from __future__ import annotations

import json
from typing import Any

from ropewalk import Agent, AgentResult, tool
from ropewalk.kits.snapshot import Snapshot


@tool
def measure(rope: str) -> str:
    """Measure the length of a rope, by its colour."""
    return {"red": "12 metres", "blue": "30 metres"}.get(rope, "there is no such rope")


def make_agent(model: Any) -> Agent:
    """An agent as each process would make it."""
    return Agent(model=model, tools=[measure], checkpointing=True)


def main(model: Any = "local") -> AgentResult:
    """Throws the agent away at each checkpoint."""
    agent = make_agent(model)
    result = agent("How long is the red rope?")
    while result.checkpoint is not None:
        print(f"(checkpoint {result.checkpoint.position} {result.checkpoint.cycle_index})")
        saved = json.dumps([agent.take_snapshot(preset="session").to_dict(), result.checkpoint.to_dict()])

        snapshot, checkpoint = json.loads(saved)
        agent = make_agent(model)
        agent.load_snapshot(Snapshot.from_dict(snapshot))
        result = agent({"checkpointResume": {"checkpoint": checkpoint}})

    return result


if __name__ == "__main__":
    main()
