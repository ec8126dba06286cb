"""One budget and one output model for a run, however often it pauses, with the plugins that users have."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from ropewalk import Agent, ResumeError, StructuredOutputException, ToolContext, tool
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


class Person(BaseModel):
    name: str
    age: int


ANN = {"name": "Ann", "age": 30}


@tool
def step() -> str:
    """Takes a step."""
    return "done"


def payload(result):
    return {"checkpointResume": {"checkpoint": result.checkpoint.to_dict()}}


def to_its_end(agent, result, **options):
    """The result, and how often the run was resumed."""
    for times in range(30):
        if result.stop_reason != "checkpoint":
            return result, times

        result = agent(payload(result), **options)

    raise AssertionError("the run does not end")


def elsewhere(agent, turns, **parameters):
    text = json.dumps(agent.take_snapshot(preset="session").to_dict())
    other = Agent(ScriptedModel(turns), callback_handler=None, checkpointing=True, **parameters)
    other.load_snapshot(Snapshot.from_dict(json.loads(text)))
    return other


def test_a_limit_ends_a_run_that_pauses_at_every_boundary(make_agent):
    endless = [turn("on", use("step", {}), usage=(10, 5)) for _ in range(5)]
    agent, model = make_agent(endless, tools=[step], checkpointing=True)
    result, times = to_its_end(agent, agent("go", limits={"turns": 2}))

    assert (result.stop_reason, model.calls, times) == ("limit_turns", 2, 4)
    assert result.state["limits"]["spent"]["total_tokens"] == 30
    assert_valid_history(agent.messages)


def test_the_output_model_of_the_call_is_that_of_the_run(make_agent):
    agent, model = make_agent([use("step", {}), use("Person", ANN)], tools=[step], checkpointing=True)
    result, times = to_its_end(agent, agent("go", structured_output_model=Person))

    assert (result.stop_reason, result.structured_output, times) == ("tool_use", Person(**ANN), 3)
    assert [spec["name"] for spec in model.requests[-1].tool_specs] == ["step", "Person"]
    assert_valid_history(agent.messages)


def test_a_pause_is_no_failed_output(make_agent):
    agent, _ = make_agent([use("Person", {"name": "Ann"})] * 3, checkpointing=True)
    result = agent("go", structured_output_model=Person)
    seen = [result.stop_reason]
    with pytest.raises(StructuredOutputException, match="after 3 attempts"):  # noqa: PT012 - the last of them raises
        for _ in range(6):
            result = agent(payload(result))
            seen.append(result.stop_reason)

    assert seen == ["checkpoint"] * 6


def test_in_another_process_both_go_on(make_agent):
    agent, _ = make_agent([use("step", {})], tools=[step], checkpointing=True)
    paused = agent("go", structured_output_model=Person, limits={"turns": 3})
    other = elsewhere(agent, [use("step", {}), use("step", {})], tools=[step])
    with pytest.raises(ResumeError, match="'Person'"):
        other(payload(paused))

    result, _ = to_its_end(other, paused, structured_output_model=Person)
    assert (result.stop_reason, other.model.calls) == ("limit_turns", 2)

    answering = elsewhere(agent, [use("Person", ANN)], tools=[step])
    result, _ = to_its_end(answering, paused, structured_output_model=Person)
    assert (result.stop_reason, result.structured_output) == ("tool_use", Person(**ANN))


def test_a_question_beside_the_conversation_spends_the_budget_of_the_run(make_agent):
    @tool(context=True)
    async def look(tool_context: ToolContext) -> str:
        """Looks somebody up."""
        return str(await tool_context.agent.structured_output_async(Person, "Ann, 30"))

    turns = [turn(use("look", {}), usage=(10, 5)), turn(use("Person", ANN), usage=(100, 50)), "end"]
    agent, _ = make_agent(turns, tools=[look])
    result = agent("go", limits={"total_tokens": 165})

    assert result.stop_reason == "limit_total_tokens"
    assert result.state["limits"]["spent"]["total_tokens"] == 165
    assert result.state["limits"]["beside"]["structured_output"]["total_tokens"] == 150
