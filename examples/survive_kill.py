"""A run that is killed in the middle of a tool, and goes on in the next process.

    python examples/survive_kill.py; python examples/survive_kill.py

The first process kills itself, as `kill -9` would, while it ships. The second one finds the session and goes on: the
charge is not repeated, and the model is told that nobody knows whether the parcel left.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from ropewalk import Agent, FileSessionManager, tool

FOLDER = Path("example-sessions")
SYSTEM_PROMPT = "You run a shop. Charge first, then ship, one tool at a time. Then tell in one sentence what happened."


@tool
def charge(amount: int) -> str:
    """Charge an amount in dollars to the customer's card."""
    print(f"(charging {amount})", flush=True)
    return "charged"


@tool
def ship(item: str) -> str:
    """Ship an item to the customer."""
    print(f"(shipping {item}, and the power goes)", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return "shipped"


def main(model: Any = "local", folder: Path = FOLDER) -> Agent:
    """Starts the run, or goes on with the one that broke off."""
    manager = FileSessionManager(session_id="order-7", storage_dir=folder)
    agent = Agent(model=model, system_prompt=SYSTEM_PROMPT, tools=[charge, ship], session_manager=manager)
    agent(None if agent.messages else "A customer buys a rope for 3 dollars.")
    return agent


if __name__ == "__main__":
    main()
