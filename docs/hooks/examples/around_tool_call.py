"""The hook `around_tool_call`."""

from __future__ import annotations

from ropewalk import Agent, error_result, hookimpl, tool
from ropewalk_testing import ScriptedModel, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class SmallNumbers:
    """Denies what is too much, and rounds what is not whole."""

    name = "small-numbers"

    @hookimpl
    async def around_tool_call(self, call, call_next):
        numbers = call.tool_use["input"]
        if max(numbers.values()) > 100:
            return error_result(call.tool_use["toolUseId"], "Numbers up to 100, please.")

        return await call_next(call.with_input({key: round(value) for key, value in numbers.items()}))


calls = [use("add", {"a": 1.2, "b": 2}), use("add", {"a": 1000, "b": 1})]
agent = Agent(model=ScriptedModel([calls, "3."]), tools=[add], plugins=[SmallNumbers()], callback_handler=None)
agent("How much?")
results = [block["toolResult"] for block in agent.messages[2]["content"]]
assert [(result["status"], result["content"][0]["text"]) for result in results] == [
    ("success", "3"),
    ("error", "Numbers up to 100, please."),
]
