"""The hook `execute_tools`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk_testing import ScriptedModel, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class LastFirst:
    """Runs the calls of one message one after the other, the last one first."""

    name = "last-first"
    order = -1  # asked before the executor that is active unasked

    @hookimpl
    async def execute_tools(self, batch, run_tool):
        results = [await run_tool(call) for call in reversed(batch.calls)]
        return results[::-1]  # in the order of the request


calls = [use("add", {"a": 1, "b": 2}), use("add", {"a": 3, "b": 4})]
agent = Agent(model=ScriptedModel([calls, "3 and 7."]), tools=[add], plugins=[LastFirst()], callback_handler=None)
agent("How much are 1 + 2 and 3 + 4?")
assert [block["toolResult"]["content"][0]["text"] for block in agent.messages[2]["content"]] == ["3", "7"]
