"""A tool that asks a human first: `python examples/approval.py`.

The run pauses at the question, and the answer may come much later: with a session manager even in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ropewalk import Agent, AgentResult, HumanInTheLoop, tool


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"{path} is deleted (this is an example: it is not)."


def main(model: Any = "local", ask: Callable[[str], str] = input) -> AgentResult:
    """Asks at the terminal before each tool call."""
    agent = Agent(model=model, tools=[delete_file], interventions=[HumanInTheLoop()])
    result = agent("Delete the file notes.txt.")
    while result.stop_reason == "interrupt":
        answers: Any = []
        for each in result.interrupts or ():
            answers.append({"interruptResponse": {"interruptId": each.id, "response": ask(f"{each.reason} ")}})

        result = agent(answers)

    return result


if __name__ == "__main__":
    main()
