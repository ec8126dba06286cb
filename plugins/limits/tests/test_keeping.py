"""Budgets of runs that pause, and of model calls beside the conversation."""

from __future__ import annotations

import json

import pytest

from ropewalk import Agent, ResumeError, current_run, hookimpl
from ropewalk.kits.snapshot import Snapshot
from ropewalk.model import ModelRequest
from ropewalk_limits import Budget, Spent
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


class Pauses:
    """Pauses at every boundary of a cycle."""

    name = "pauses"

    @hookimpl
    async def emit_checkpoint(self, position, cycle_index):
        return {"position": position, "cycle": cycle_index}

    @hookimpl
    async def resume_run(self, payload, pause):
        return pause is not None and payload == pause.checkpoint


class Probe:
    """A tool that asks, or does what a test says."""

    tool_name = "probe"
    tool_spec = {"name": "probe", "description": "Probes.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    def __init__(self, body=None):
        self.body = body

    async def invoke(self, call):
        text = "ok" if self.body is None else str(await self.body(call))
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def endless(request):
    return "said" if request.purpose != "turn" else turn("on", use("probe"), usage=(10, 5))


def agent_of(*plugins, body=None, script=endless, **parameters):
    return Agent(ScriptedModel(script), tools=[Probe(body)], plugins=list(plugins), callback_handler=None, **parameters)


def to_its_end(agent, result, most=50, **options):
    """Goes on until the run ends; gives the result, and how often it was resumed."""
    for times in range(most):
        if result.stop_reason != "checkpoint":
            return result, times

        result = agent({"checkpointResume": result.checkpoint}, **options)

    raise AssertionError("the run does not end")


def elsewhere(agent, *plugins, **parameters):
    text = json.dumps(agent.take_snapshot(preset="session").to_dict())
    other = agent_of(*plugins, **parameters)
    other.load_snapshot(Snapshot.from_dict(json.loads(text)))
    return other


def answer(result):
    return [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in result.interrupts]


# -- one budget ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "stop", "turns"),
    [
        ({"turns": 2}, "limit_turns", 2),
        ({"total_tokens": 45}, "limit_total_tokens", 3),
        ({"output_tokens": 10}, "limit_output_tokens", 2),
        ({"tool_calls": 3}, "limit_tool_calls", 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("again", [False, True], ids=["not said again", "said again"])
def test_a_run_has_one_budget_however_often_it_pauses(limits, stop, turns, again):
    agent = agent_of(Pauses())
    result, times = to_its_end(agent, agent("go", limits=limits), **({"limits": limits} if again else {}))

    assert (result.stop_reason, agent.model.calls, times) == (stop, turns, 2 * turns)
    assert result.state["limits"]["spent"]["turns"] == turns
    assert result.state["limits"]["spent"]["total_tokens"] == 15 * turns
    assert_valid_history(agent.messages)


def test_a_new_prompt_has_a_fresh_budget():
    agent = agent_of(Pauses())
    result = agent("go", limits={"turns": 1})
    assert to_its_end(agent, result)[0].stop_reason == "limit_turns"

    given_up = agent("go", limits={"turns": 1})
    assert given_up.stop_reason == "checkpoint"
    agent("something else", limits={"turns": 1})
    assert agent.model.calls == 3


def test_a_new_prompt_without_limits_has_none():
    agent = agent_of(Pauses())
    agent("go", limits={"turns": 1})
    result = agent("something else")
    for _ in range(8):
        result = agent({"checkpointResume": result.checkpoint})

    assert (result.stop_reason, agent.model.calls) == ("checkpoint", 6)


def test_new_limits_take_the_place_of_the_old_and_what_was_spent_stays():
    agent = agent_of(Pauses())
    result, _ = to_its_end(agent, agent("go", limits={"turns": 1}), limits={"turns": 3})
    assert (result.stop_reason, agent.model.calls) == ("limit_turns", 3)


def test_the_time_in_which_a_run_waits_does_not_count(clock):
    async def body(call):
        clock.now += 4

    agent = agent_of(Pauses(), body=body)
    result = agent("go", limits={"seconds": 8})
    while result.stop_reason == "checkpoint":
        clock.now += 1_000
        result = agent({"checkpointResume": result.checkpoint})

    assert (result.stop_reason, agent.model.calls) == ("limit_seconds", 2)
    assert result.state["limits"]["spent"]["seconds"] == 8


def test_a_run_that_waits_for_answers_keeps_its_budget():
    async def body(call):
        return call.interrupt("sure")

    agent = agent_of(body=body)
    result = agent("go", limits={"turns": 2})
    while result.stop_reason == "interrupt":
        result = agent(answer(result))

    assert (result.stop_reason, agent.model.calls) == ("limit_turns", 2)


@pytest.mark.parametrize("moved", [False, True], ids=["here", "elsewhere"])
def test_a_run_that_waits_for_leave_to_begin_keeps_its_budget(moved):
    """Also when a plugin asks that stands far outside."""

    class Asks:
        name = "asks"
        order = -1_000

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            current_run().interrupt("may it run", of=current_run().id)
            return await call_next(invocation)

    agent = agent_of(Asks())
    result = agent("go", limits={"turns": 2})
    if moved:
        agent = elsewhere(agent, Asks(), "limits")

    result = agent(answer(result))
    assert (result.stop_reason, agent.model.calls) == ("limit_turns", 2)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_turn_whose_hooks_ask_counts_once(where):
    class Asks:
        name = "asks"

        @hookimpl
        async def around_model_call(self, request, call_next):
            if where == "before":
                current_run().interrupt("fine")
                return await call_next(request)

            outcome = await call_next(request)
            current_run().interrupt("fine")
            return outcome

    agent = agent_of(Asks())
    result = agent("go", limits={"turns": 2, "total_tokens": 30})
    while result.stop_reason == "interrupt":
        result = agent(answer(result))

    assert (result.stop_reason, agent.model.calls) == ("limit_turns", 2)
    assert result.state["limits"]["spent"]["total_tokens"] == 30


# -- elsewhere --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumes", range(4))
def test_elsewhere_the_run_goes_on_with_its_budget(resumes):
    agent = agent_of(Pauses())
    result = agent("go", limits={"turns": 3})
    for _ in range(resumes):
        result = agent({"checkpointResume": result.checkpoint})

    other = elsewhere(agent, Pauses())
    result, _ = to_its_end(other, result)

    assert (result.stop_reason, agent.model.calls + other.model.calls) == ("limit_turns", 3)
    assert result.state["limits"]["spent"]["tool_calls"] == 3


def test_elsewhere_a_run_that_had_no_limits_needs_none():
    agent = agent_of(Pauses(), script=[use("probe"), use("probe"), "end"])
    to_its_end(agent, agent("go", limits={"turns": 1}))
    result = agent("go")
    other = elsewhere(agent, Pauses(), script=["end"])
    assert to_its_end(other, result)[0].stop_reason == "end_turn"


def test_elsewhere_a_limited_cost_needs_prices():
    priced = ("limits", {"prices": {"*": {"input": 1_000_000, "output": 0}}})
    agent = agent_of(Pauses(), priced)
    result = agent("go", limits={"cost": 20})

    other = elsewhere(agent, Pauses())
    with pytest.raises(ValueError, match="without prices"):
        other({"checkpointResume": result.checkpoint})

    assert other.suspension is not None
    result, _ = to_its_end(elsewhere(agent, Pauses(), priced), result)
    assert result.state["limits"]["spent"]["cost"] == 20


# -- shared -----------------------------------------------------------------------------------------------------------


def test_a_shared_budget_is_drawn_on_by_the_run_that_goes_on():
    agent, budget = agent_of(Pauses()), Budget(turns=2)
    result, _ = to_its_end(agent, agent("go", limits=budget))
    assert (result.stop_reason, budget.total.turns, agent.model.calls) == ("limit_turns", 2, 2)
    assert agent("more", limits=budget).stop_reason == "limit_turns"


def test_elsewhere_a_shared_budget_has_to_be_replaced():
    agent = agent_of(Pauses())
    result = agent("go", limits=Budget(turns=2))
    other = elsewhere(agent, Pauses())
    with pytest.raises(ResumeError, match=r"draws on a Budget.*pass limits="):
        other({"checkpointResume": result.checkpoint})

    assert other.suspension.kind == "checkpoint"
    result, _ = to_its_end(other, other({"checkpointResume": result.checkpoint}, limits={"turns": 1}))
    assert (result.stop_reason, other.model.calls) == ("limit_turns", 1)


# -- beside the conversation --------------------------------------------------------------------------------------


def asks(purpose, usage=(100, 50)):
    async def body(call):
        request = ModelRequest([{"role": "user", "content": [{"text": "sum it up"}]}])
        return (await current_run().ask_model(request, purpose)).stop_reason

    def script(request):
        return turn("said", usage=usage) if request.purpose != "turn" else turn(use("probe"), usage=(10, 5))

    return {"body": body, "script": script}


def test_a_model_call_beside_the_conversation_spends_the_budget_and_is_told_apart():
    agent = agent_of(**asks("summary"))
    result = agent("go", limits={"total_tokens": 165})

    assert (result.stop_reason, agent.model.calls) == ("limit_total_tokens", 2)
    assert result.state["limits"]["spent"]["total_tokens"] == 165
    assert result.state["limits"]["spent"]["turns"] == 1
    assert result.state["limits"]["beside"] == {"summary": Spent(output_tokens=50, total_tokens=150).to_dict()}


def test_it_is_attributed_across_pauses_and_agents():
    budget = Budget(total_tokens=500)
    for purpose in ("summary", "facts"):
        agent = agent_of(Pauses(), **asks(purpose), name=purpose)
        result = agent("go", limits=budget)
        for _ in range(2):
            result = agent({"checkpointResume": result.checkpoint})

    assert {purpose: spent.total_tokens for purpose, spent in budget.beside.items()} == {"summary": 150, "facts": 150}
    assert {name: spent.total_tokens for name, spent in budget.spent.items()} == {"summary": 180, "facts": 180}


def test_what_a_call_kept_is_told_elsewhere_too():
    agent = agent_of(Pauses(), **asks("summary"))
    result = agent("go", limits={"turns": 1})
    result = agent({"checkpointResume": result.checkpoint})
    result, _ = to_its_end(elsewhere(agent, Pauses()), result)
    assert result.state["limits"]["beside"]["summary"]["total_tokens"] == 150


def test_nothing_is_kept_when_the_run_has_ended():
    agent = agent_of()
    agent("go", limits={"turns": 1})
    assert agent.plugin_state("limits").get() == {}
