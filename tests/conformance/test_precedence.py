"""What ends a run after its tools, in this order: interrupt, cancel, a hook, structured output, checkpoint, limit."""

from __future__ import annotations

from itertools import combinations

import pytest
from pydantic import BaseModel

from ropewalk import Agent, ToolContext, ToolsOutcome, hookimpl, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, use

ORDER = {
    "interrupt": "interrupt",
    "cancel": "cancelled",
    "end_turn": "end_turn",
    "structured output": "tool_use",
    "checkpoint": "checkpoint",
    "limit": "limit_turns",
}
"""What ends a run, strongest first, and the stop reason."""
SUBSETS = [chosen for size in range(1, len(ORDER) + 1) for chosen in combinations(ORDER, size)]
PAIRS = [chosen for chosen in SUBSETS if len(chosen) == 2]


class Answer(BaseModel):
    n: int


class EndsTurn:
    name = "ends-turn"

    @hookimpl
    async def around_tools(self, batch, call_next):
        return ToolsOutcome((await call_next(batch)).results, end_turn="enough")


def after_the_tools(*chosen):
    """Runs an agent until its first tools have run, with all of these at once."""

    @tool(context=True)
    async def work(tool_context: ToolContext) -> str:
        """Works, and may cancel the agent and ask its caller."""
        if "cancel" in chosen:
            tool_context.agent.cancel()

        return tool_context.interrupt("sure") if "interrupt" in chosen else "worked"

    uses = [use("work", {}, id="W")]
    options = {}
    if "structured output" in chosen:
        uses.append(use("Answer", {"n": 1}, id="S"))
        options["structured_output_model"] = Answer

    if "limit" in chosen:
        options["limits"] = {"turns": 1}

    agent = Agent(
        ScriptedModel([uses, "the next turn"]),
        tools=[work],
        callback_handler=None,
        plugins=[EndsTurn()] if "end_turn" in chosen else [],
        checkpointing="checkpoint" in chosen,
    )
    result = agent("go", **options)
    if result.checkpoint is not None and result.checkpoint.position == "after_model":
        result = agent({"checkpointResume": {"checkpoint": result.checkpoint.to_dict()}})

    return agent, result


def test_the_pairs_are_all_there_are():
    assert len(PAIRS) == 15


def test_without_any_of_them_the_run_goes_on():
    _, result = after_the_tools()
    assert (result.stop_reason, str(result)) == ("end_turn", "the next turn\n")


@pytest.mark.parametrize("alone", ORDER)
def test_each_of_them_ends_the_run(alone):
    agent, result = after_the_tools(alone)
    assert (result.stop_reason, agent.model.calls) == (ORDER[alone], 1)
    assert str(result) != "the next turn\n"


@pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
def test_of_two_the_stronger_is_told(stronger, weaker):
    agent, result = after_the_tools(stronger, weaker)

    assert (result.stop_reason, agent.model.calls) == (ORDER[stronger], 1)
    assert (result.interrupts is not None) == (stronger == "interrupt")
    assert (result.checkpoint is not None) == (stronger == "checkpoint")
    assert (agent.suspension is not None) == (stronger in ("interrupt", "checkpoint"))
    assert_valid_history(agent.messages, open_tail=stronger == "interrupt")


@pytest.mark.parametrize("chosen", [each for each in SUBSETS if len(each) > 2], ids=" + ".join)
def test_of_several_the_strongest_is_told(chosen):
    agent, result = after_the_tools(*chosen)
    assert (result.stop_reason, agent.model.calls) == (ORDER[chosen[0]], 1)


def test_what_is_weaker_is_told_when_the_run_goes_on():
    agent, asked = after_the_tools("interrupt", "structured output", "checkpoint", "limit")
    answer = [{"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}]
    result = agent(answer)
    assert (result.stop_reason, result.structured_output) == ("tool_use", Answer(n=1))

    agent, paused = after_the_tools("checkpoint", "limit")
    result = agent({"checkpointResume": {"checkpoint": paused.checkpoint.to_dict()}})
    assert (result.stop_reason, agent.model.calls) == ("limit_turns", 1)
