"""The hook `around_tools`."""

from __future__ import annotations

from ropewalk import Agent, ToolsOutcome, hookimpl, tool
from ropewalk_testing import ScriptedModel, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class AnswerAtOnce:
    """Ends the run with the tools' results; the model is not asked again."""

    name = "answer-at-once"

    @hookimpl
    async def around_tools(self, batch, call_next):
        outcome = await call_next(batch)
        texts = [result["content"][0]["text"] for result in outcome.results]
        return ToolsOutcome(outcome.results, end_turn=", ".join(texts))


model = ScriptedModel([use("add", {"a": 1, "b": 2})])
agent = Agent(model=model, tools=[add], plugins=[AnswerAtOnce()], callback_handler=None)
assert str(agent("How much is 1 + 2?")) == "3\n"
assert model.calls == 1
