"""Structured output of runs that pause."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from ropewalk import Agent, ResumeError, StructuredOutputException, current_run, hookimpl, tool
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use

GOOD = {"n": 1, "s": "x"}
BAD = {"s": "x"}


class Q(BaseModel):
    """Another output model."""

    n: int


class Pauses:
    """Pauses after the model, after the tools, or both."""

    name = "pauses"

    def __init__(self, *positions):
        self.positions = positions

    @hookimpl
    async def emit_checkpoint(self, position, cycle_index):
        return {"position": position, "cycle": cycle_index} if position in self.positions else None

    @hookimpl
    async def resume_run(self, payload, pause):
        return pause is not None and payload == pause.checkpoint


@tool
def ask() -> str:
    """Asks."""
    return str(current_run().interrupt("sure", where="tool_call"))


BOTH = ("after_model", "after_tools")


def go_on(agent, result, **options):
    return agent({"checkpointResume": result.checkpoint}, **options)


def answer(result, value="yes"):
    return [{"interruptResponse": {"interruptId": each.id, "response": value}} for each in result.interrupts]


def elsewhere(agent, turns, **parameters):
    """The agent of another process: nothing but JSON goes there."""
    text = json.dumps(agent.take_snapshot(preset="session").to_dict())
    other = Agent(ScriptedModel(turns), callback_handler=None, **parameters)
    other.load_snapshot(Snapshot.from_dict(json.loads(text)))
    return other


# -- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_paused_run_keeps_its_output_model_without_being_told_again(make_agent, pair):
    agent, model = make_agent([use("ask", {}), use("P", GOOD)], tools=[ask], plugins=[Pauses("after_model")])

    paused = agent("go", structured_output_model=pair)
    asked = go_on(agent, paused)
    paused = agent(answer(asked))
    result = go_on(agent, paused)

    assert (asked.stop_reason, paused.structured_output) == ("interrupt", None)
    assert (result.stop_reason, result.structured_output, model.calls) == ("tool_use", pair(n=1, s="x"), 2)
    assert_valid_history(agent.messages)


def test_the_output_ends_the_run_before_a_checkpoint_after_the_tools(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD)], plugins=[Pauses("after_tools")])
    result = agent("go", structured_output_model=pair)

    assert (result.stop_reason, result.structured_output) == ("tool_use", pair(n=1, s="x"))
    assert agent.suspension is None


def test_a_hook_around_the_tools_that_makes_a_new_outcome_does_not_undo_the_end(make_agent, pair):
    class Rewrites:
        name = "rewrites"

        @hookimpl
        async def around_tools(self, batch, call_next):
            outcome = await call_next(batch)
            return type(outcome)(list(outcome.results))

    agent, _ = make_agent([use("P", GOOD)], plugins=[Rewrites(), Pauses("after_tools")])
    assert agent("go", structured_output_model=pair).stop_reason == "tool_use"


def test_attempts_count_across_pauses(make_agent, pair):
    agent, model = make_agent([use("P", BAD)] * 4, plugins=[Pauses(*BOTH)])

    result = agent("go", structured_output_model=pair)
    for _ in range(5):
        assert result.stop_reason == "checkpoint"
        if model.calls == 3 and result.checkpoint["position"] == "after_tools":
            break

        result = go_on(agent, result)

    with pytest.raises(StructuredOutputException, match="after 3 attempts"):
        go_on(agent, result)

    assert model.calls == 3


def test_a_forced_answer_stays_forced(make_agent, pair):
    agent, model = make_agent(["text", use("P", BAD), use("P", GOOD)], plugins=[Pauses("after_tools")])

    result = agent("go", structured_output_model=pair, structured_output_prompt="Fill it.")
    result = go_on(agent, result)

    assert result.structured_output == pair(n=1, s="x")
    assert [request.tool_choice for request in model.requests] == [None, *[{"tool": {"name": "P"}}] * 2]
    assert agent.messages[2]["content"] == [{"text": "Fill it."}]


def test_the_next_prompt_has_no_output_model_of_the_run_that_was_given_up(make_agent, pair):
    agent, model = make_agent([use("P", GOOD), "plain"], plugins=[Pauses("after_model")])
    agent("go", structured_output_model=pair)

    result = agent("something else")

    assert (str(result), result.structured_output) == ("plain\n", None)
    assert model.requests[-1].tool_specs == ()


# -- interrupts --------------------------------------------------------------------------------------------------


def test_a_valid_answer_beside_a_call_that_asks_counts_when_the_run_goes_on(make_agent, pair):
    turns = [[use("P", GOOD, id="p"), use("ask", {}, id="a")]]
    agent, model = make_agent(turns, tools=[ask], structured_output_model=pair)

    asked = agent("go")
    result = agent(answer(asked))

    assert (asked.stop_reason, asked.structured_output) == ("interrupt", None)
    assert (result.stop_reason, result.structured_output, model.calls) == ("tool_use", pair(n=1, s="x"), 1)


def test_a_wrong_answer_beside_a_call_that_asks_counts_once(make_agent, pair):
    turns = [[use("P", BAD, id="p"), use("ask", {}, id="a")], use("P", BAD), use("P", GOOD)]
    agent, _ = make_agent(turns, tools=[ask], structured_output_model=pair)
    result = agent(answer(agent("go")))
    assert result.structured_output == pair(n=1, s="x")


@pytest.mark.parametrize("first", [BAD, GOOD], ids=["wrong", "right"])
def test_a_hook_that_asks_after_the_tools_changes_nothing(make_agent, pair, first):
    class Asks:
        name = "asks"

        @hookimpl
        async def around_tools(self, batch, call_next):
            outcome = await call_next(batch)
            batch.interrupt("fine")
            return outcome

    agent, model = make_agent([use("P", first), use("P", GOOD)], plugins=[("structured", {"max_attempts": 2}), Asks()])

    result = agent("go", structured_output_model=pair)
    for _ in range(2):
        if result.stop_reason == "interrupt":
            result = agent(answer(result))

    assert (result.stop_reason, result.structured_output) == ("tool_use", pair(n=1, s="x"))
    assert model.calls == (1 if first is GOOD else 2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("order", [0, -5_000], ids=["late", "early"])
def test_a_hook_around_the_invocation_may_ask(make_agent, pair, when, order):
    class Asks:
        name = "asks"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            if when == "before":
                current_run().interrupt("go")
                return await call_next(invocation)

            result = await call_next(invocation)
            current_run().interrupt("done")
            return result

    asks = Asks()
    asks.order = order
    agent, model = make_agent([use("P", GOOD)], plugins=[asks])
    asked = agent("go", structured_output_model=pair)
    result = agent(answer(asked))

    assert asked.stop_reason == "interrupt"
    assert (result.stop_reason, result.structured_output, model.calls) == ("tool_use", pair(n=1, s="x"), 1)


def test_a_resumed_run_that_a_hook_repeats_starts_with_nothing(make_agent, pair):
    class Twice:
        name = "twice"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            result = await call_next(invocation)
            again = result.structured_output == pair(**GOOD)
            return await call_next(invocation) if again else result

    other = {"n": 2, "s": "y"}
    agent, _ = make_agent([use("P", GOOD), use("P", other)], plugins=[Pauses("after_model"), Twice()])
    result = agent("go", structured_output_model=pair)
    result = go_on(agent, result)
    assert (result.stop_reason, result.structured_output) == ("checkpoint", None)
    assert go_on(agent, result).structured_output == pair(**other)


# -- another process --------------------------------------------------------------------------------------------------


def test_elsewhere_the_output_model_has_to_be_passed_again(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD)], plugins=[Pauses("after_model")])
    paused = agent("go", structured_output_model=pair)
    other = elsewhere(agent, [], plugins=[Pauses("after_model")])

    before = list(other.messages)
    for wrong in ({}, {"structured_output_model": Q}):
        with pytest.raises(ResumeError, match=r"output model 'P'.*pass structured_output_model=P again"):
            go_on(other, paused, **wrong)

    assert (list(other.messages), other.suspension.kind) == (before, "checkpoint")
    assert go_on(other, paused, structured_output_model=pair).structured_output == pair(n=1, s="x")


def test_elsewhere_the_agents_own_output_model_will_do(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD)], plugins=[Pauses("after_model")])
    paused = agent("go", structured_output_model=pair)
    other = elsewhere(agent, [], plugins=[Pauses("after_model")], structured_output_model=pair)
    assert go_on(other, paused).structured_output == pair(n=1, s="x")


def test_elsewhere_attempts_and_answers_are_known(make_agent, pair):
    turns = [use("P", BAD), [use("P", GOOD, id="p"), use("ask", {}, id="a")]]
    agent, _ = make_agent(turns, tools=[ask], structured_output_model=pair)
    asked = agent("go")
    other = elsewhere(agent, [], tools=[ask], structured_output_model=pair)
    result = other(answer(asked))
    assert (result.stop_reason, result.structured_output) == ("tool_use", pair(n=1, s="x"))


def test_elsewhere_a_run_without_output_model_needs_nothing_of_an_earlier_one(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD), use("ask", {}), "end"], tools=[ask])
    agent("go", structured_output_model=pair)
    asked = agent("go")
    other = elsewhere(agent, ["end"], tools=[ask])
    assert str(other(answer(asked))) == "end\n"


# -- beside a pause --------------------------------------------------------------------------------------------------


def test_no_question_is_put_beside_a_paused_run(make_agent, pair):
    agent, model = make_agent([use("ask", {})], tools=[ask])
    agent("go")
    with pytest.raises(RuntimeError, match=r"cannot call structured_output while a run .* is paused \(interrupt\)"):
        agent.structured_output(pair, "what?")

    assert model.calls == 1
    assert agent.suspension is not None


def test_nothing_is_kept_when_the_run_has_ended(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD)])
    agent("go", structured_output_model=pair)
    assert agent.plugin_state("structured").get() == {}
