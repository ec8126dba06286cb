"""Several models behind each other, within limits a minute: `python examples/models.py`.

Without AWS credentials the first one refuses, and the embedded one answers. Needs the extras bedrock, fallback,
rate-limit and local.
"""

from __future__ import annotations

from typing import Any

from ropewalk import Agent, AgentResult


def main(model: Any = "bedrock:us.amazon.nova-lite-v1:0", spare: Any = "local") -> AgentResult:
    """Asks the first model, and the spare one when that fails."""
    fallback = {"models": [spare], "on": ["auth", "throttle", "transient", "overflow"]}
    limits = {"requests_per_minute": 60, "tokens_per_minute": 100_000}
    agent = Agent(model=model, plugins=[("fallback", fallback), ("rate-limit", limits)])
    result = agent("Name one use of rope.")
    print(f"(answered by {result.state['fallback']['model']})")
    return result


if __name__ == "__main__":
    main()
