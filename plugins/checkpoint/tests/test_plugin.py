"""Agents with the plugin."""

from __future__ import annotations

import pytest

from ropewalk import Agent, Interrupt, Suspend, hookimpl
from ropewalk.errors import PluginError
from ropewalk.kits.suspension import Suspension
from ropewalk_checkpoint import Checkpoint, CheckpointException, CheckpointPlugin
from ropewalk_testing import PluginContract, ScriptedModel, assert_valid_history, use


class TestContract(PluginContract):
    plugin = CheckpointPlugin


class Step:
    tool_name = "step"
    tool_spec = {"name": "step", "description": "Steps.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    def __init__(self):
        self.ran = 0

    async def invoke(self, call):
        self.ran += 1
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "done"}]}


def agent_of(turns=None, tools=None, **parameters):
    script = [use("step", {}), "end"] if turns is None else turns
    return Agent(ScriptedModel(script), tools=[Step()] if tools is None else tools, callback_handler=None, **parameters)


def payload(result):
    return {"checkpointResume": {"checkpoint": result.checkpoint.to_dict()}}


# -- on and off ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{"checkpointing": True}, {"plugins": ["checkpoint"]}], ids=str)
async def test_it_is_at_work_when_asked_for(parameters):
    result = await agent_of(**parameters).invoke_async("go")
    assert (result.stop_reason, result.checkpoint) == ("checkpoint", Checkpoint("after_model", 0))


@pytest.mark.parametrize("parameters", [{}, {"checkpointing": False}, {"checkpointing": None}], ids=str)
async def test_it_is_not_at_work_unasked(parameters):
    agent = agent_of(**parameters)
    assert (await agent.invoke_async("go")).stop_reason == "end_turn"
    assert not agent.hooks.plan.emit_checkpoint
    assert not agent.hooks.plan.resume_run


@pytest.mark.parametrize("value", [1, 0, "yes", [], {}], ids=repr)
def test_what_is_no_flag_is_refused(value):
    with pytest.raises(ValueError, match=r"checkpointing=.* is no flag: give True or False"):
        agent_of(checkpointing=value)


def test_switched_off_it_cannot_be_asked_for():
    with pytest.raises(PluginError, match="checkpoint"):
        agent_of(checkpointing=True, plugins=["-checkpoint"])


async def test_one_plugin_serves_many_agents():
    agents = [agent_of(checkpointing=True) for _ in range(3)]
    first = [await agent.invoke_async("go") for agent in agents]
    assert len({id(next(p for p in agent.hooks.plugins if p.name == "checkpoint")) for agent in agents}) == 1

    await agents[1].invoke_async(payload(first[1]))
    assert [agent.suspension.checkpoint["position"] for agent in agents] == [
        "after_model",
        "after_tools",
        "after_model",
    ]


# -- going on ------------------------------------------------------------------------------------------------------


async def test_the_pauses_of_a_run():
    step = Step()
    agent = agent_of([[use("step", {}), use("step", {})], use("step", {}), "end"], [step], checkpointing=True)
    told = []
    result = await agent.invoke_async("go")
    while result.checkpoint is not None:
        told.append((result.checkpoint.position, result.checkpoint.cycle_index, step.ran, agent.model.calls))
        result = await agent.invoke_async(payload(result))

    assert told == [
        ("after_model", 0, 0, 1),
        ("after_tools", 0, 2, 1),
        ("after_model", 1, 2, 2),
        ("after_tools", 1, 3, 2),
    ]
    assert (result.stop_reason, agent.suspension) == ("end_turn", None)
    assert_valid_history(agent.messages)


async def test_metrics_are_those_of_each_call():
    agent = agent_of(checkpointing=True)
    result = await agent.invoke_async("go")
    seen = []
    while result.checkpoint is not None:
        seen.append((result.metrics.cycle_count, result.metrics.model_calls, len(result.metrics.tool_metrics)))
        result = await agent.invoke_async(payload(result))

    assert [*seen, (result.metrics.cycle_count, result.metrics.model_calls, 0)] == [(1, 1, 0), (0, 0, 1), (1, 1, 0)]


async def test_around_invocation_runs_at_every_resume():
    class Counts:
        name = "counts"
        seen: list[bool] = []  # noqa: RUF012

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            self.seen.append(invocation.resumed)
            return await call_next(invocation)

    agent = agent_of(checkpointing=True, plugins=[Counts()])
    result = await agent.invoke_async("go")
    while result.checkpoint is not None:
        result = await agent.invoke_async(payload(result))

    assert Counts.seen == [False, True, True]


async def test_a_stream_ends_with_the_checkpoint():
    agent = agent_of(checkpointing=True)
    events = [event async for event in agent.stream_async("go")]
    assert events[-1]["result"].checkpoint == Checkpoint("after_model", 0)
    assert events[-1]["result"].to_dict()["checkpoint"] == Checkpoint("after_model", 0).to_dict()


# -- what does not fit ---------------------------------------------------------------------------------------------


async def refusal(payload, pause):
    with pytest.raises(CheckpointException) as caught:
        await CheckpointPlugin().resume_run(payload, pause)

    return str(caught.value)


def pause(kind, **fields):
    return Suspension(kind=kind, run="r", position="tools", **fields)


FIRST = {"checkpoint": Checkpoint("after_model").to_dict()}


async def test_no_pause_is_told():
    assert "no run of this agent waits at a checkpoint" in await refusal(FIRST, None)


async def test_a_run_that_waits_for_answers_says_so():
    text = await refusal(FIRST, pause("interrupt", interrupts=(Interrupt("i", "n"),)))
    assert "waits" not in text.split(":")[0]
    assert "does not wait at a checkpoint but for answers" in text
    assert "interruptResponse" in text


async def test_a_run_that_was_broken_off_says_so():
    assert "but for a new prompt, or None" in await refusal(FIRST, pause("crash"))


async def test_another_checkpoint_is_told_from_the_one():
    later = pause("checkpoint", checkpoint=Checkpoint("after_tools", 4).to_dict())
    assert "is that after_model of cycle 0, and the run waits after_tools of cycle 4" in await refusal(FIRST, later)


async def test_the_checkpoint_of_another_plugin_is_not_taken_for_its_own():
    foreign = pause("checkpoint", checkpoint={"token": "x"})
    assert "schema version" in await refusal(FIRST, foreign)


async def test_a_refused_checkpoint_leaves_the_run_waiting():
    step = Step()
    agent = agent_of(tools=[step], checkpointing=True)
    result = await agent.invoke_async("go")
    before = agent.suspension
    with pytest.raises(CheckpointException):
        await agent.invoke_async({"checkpointResume": {"checkpoint": Checkpoint("after_tools").to_dict()}})

    assert (agent.suspension, step.ran) == (before, 0)
    assert (await agent.invoke_async(payload(result))).checkpoint == Checkpoint("after_tools", 0)
    assert step.ran == 1


async def test_an_interrupt_skips_the_checkpoint_after_the_tools():
    class Asks(Step):
        async def invoke(self, call):
            if not call.answers:
                raise Suspend((Interrupt("i", "sure"),))

            return await super().invoke(call)

    agent = agent_of(tools=[Asks()], checkpointing=True)
    asked = await agent.invoke_async(payload(await agent.invoke_async("go")))
    assert (asked.stop_reason, asked.checkpoint) == ("interrupt", None)

    answered = await agent.invoke_async([{"interruptResponse": {"interruptId": "i", "response": None}}])
    assert answered.checkpoint == Checkpoint("after_tools", 0)
