"""A run that is killed in the middle of a tool, and goes on in the next process.

    python examples/survive_kill.py; python examples/survive_kill.py

The first process kills itself while it ships, as `kill -9` would. The second one finds the session and goes on: the
order is not looked up again, and the model is told that nobody knows whether the parcel left.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from ropewalk import Agent, FileSessionManager, tool

FOLDER = Path("example-sessions")


@tool
def look_up_order(number: int) -> str:
    """Look up an order: what to ship, and to whom."""
    print(f"(looking up order {number})", flush=True)
    return "item: blue rope, to: Ada"


@tool
def ship(item: str, to: str) -> str:
    """Ship an item to a customer."""
    print(f"(shipping {item} to {to}, and the power goes)", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return "shipped"


def main(model: Any = "local", folder: Path = FOLDER) -> Agent:
    """Starts the run, or goes on with the one that broke off."""
    manager = FileSessionManager(session_id="order-7", storage_dir=folder)
    agent = Agent(model=model, tools=[look_up_order, ship], session_manager=manager)
    agent(None if agent.suspension else "Look up order 7, then ship it.")
    return agent


if __name__ == "__main__":
    main()
