"""Budgets of a call (conformance 22 and 129 to 133)."""

from __future__ import annotations

import pytest

from ropewalk import Budget, tool
from ropewalk.errors import ModelThrottledException
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import assert_valid_history, turn, use


@pytest.fixture
def counted():
    """A tool, and how often it has run."""
    ran = []

    @tool
    def step() -> str:
        """Takes a step."""
        ran.append(1)
        return "done"

    return step, ran


def steps(count, usage=(10, 5)):
    return [turn(f"step {i}", use("step", {}, id=f"T{i}"), usage=usage) for i in range(count)]


def test_so_many_turns_and_no_more(ask, make_agent, counted):
    """Conformance 129."""
    step, ran = counted
    agent, model = make_agent([*steps(5), "end"], tools=[step])

    result = ask(agent, "go", limits={"turns": 2})

    assert (result.stop_reason, model.calls, len(ran)) == ("limit_turns", 2, 2)
    assert result.message["role"] == "assistant"
    assert result.message["content"][0] == {"text": "step 1"}
    assert str(result) == "step 1\n"
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert agent.messages[-1]["content"][0]["toolResult"]["toolUseId"] == "T1"
    assert_valid_history(agent.messages)


def test_an_answer_in_the_last_turn_is_an_answer(ask, make_agent, counted):
    """Conformance 129."""
    step, _ = counted
    agent, _ = make_agent([*steps(1), "end"], tools=[step])
    assert ask(agent, "go", limits={"turns": 2}).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        ({"turns": 2, "total_tokens": 30, "output_tokens": 10}, "limit_turns"),
        ({"total_tokens": 30, "output_tokens": 10}, "limit_total_tokens"),
        ({"output_tokens": 10, "total_tokens": 31}, "limit_output_tokens"),
        ({"tool_calls": 2, "output_tokens": 10}, "limit_output_tokens"),
        ({"tool_calls": 2, "turns": 3}, "limit_tool_calls"),
        ({"turns": 3, "total_tokens": 46, "output_tokens": 16}, "limit_turns"),
    ],
    ids=str,
)
def test_turns_come_before_total_tokens_before_output_tokens(ask, make_agent, counted, limits, stop):
    """Conformance 130."""
    step, _ = counted
    agent, _ = make_agent([*steps(5), "end"], tools=[step])
    assert ask(agent, "go", limits=limits).stop_reason == stop


@pytest.mark.parametrize(
    "limits",
    [
        {"turns": 0},
        {"turns": -1},
        {"turns": True},
        {"turns": 2.0},
        {"turns": "2"},
        {"turns": None},
        {"output_tokens": 0},
        {"total_tokens": False},
        {"tool_calls": 1.5},
        {"seconds": 0},
        {"seconds": True},
        {"turn": 1},
        {"turns": 2, "max_tokens": 3},
        3,
        ["turns"],
    ],
    ids=str,
)
def test_limits_that_are_none_are_a_type_error_before_any_work(ask, make_agent, limits):
    """Conformance 131."""
    agent, model = make_agent(["hi"])

    with pytest.raises(TypeError, match="limits="):
        ask(agent, "go", limits=limits)

    assert (model.calls, list(agent.messages)) == (0, [])
    assert str(ask(agent, "go")) == "hi\n"


def test_a_second_call_has_a_fresh_budget(ask, make_agent, counted):
    """Conformance 133."""
    step, ran = counted
    agent, model = make_agent([*steps(4), "end"], tools=[step])

    for calls in (2, 4):
        assert ask(agent, "go", limits={"turns": 2}).stop_reason == "limit_turns"
        assert (model.calls, len(ran)) == (calls, calls)

    assert ask(agent, "go").stop_reason == "end_turn"
    assert_valid_history(agent.messages)


def test_a_limited_call_leaves_a_history_that_the_next_one_can_use(ask, make_agent, counted, shape):
    """Conformance 22 (B)."""
    step, _ = counted
    agent, model = make_agent([*steps(1), "end"], tools=[step])
    ask(agent, "go", limits={"turns": 1})

    assert str(ask(agent, "and now?")) == "end\n"

    assert [role for role, _ in shape(agent.messages)] == ["user", "assistant", "user", "assistant"]
    assert [list(block) for block in agent.messages[2]["content"]] == [["toolResult"], ["text"]]
    assert_valid_history(model.requests[-1].messages)


def test_a_repeated_model_call_costs_tokens_and_no_turn(ask, make_agent, counted):
    """Conformance 129."""

    class Waits(Seam):
        async def sleep(self, seconds):
            pass

    step, _ = counted
    slow = turn("half", error=ModelThrottledException("slower"))
    agent, model = make_agent([slow, slow, *steps(2), "end"], tools=[step])
    with use_seam(Waits()):
        result = ask(agent, "go", limits={"turns": 2})

    assert (result.stop_reason, model.calls, result.metrics.cycle_count) == ("limit_turns", 4, 2)


def test_the_result_says_what_was_reached_and_spent(ask, make_agent, counted):
    """Conformance 129."""
    step, _ = counted
    agent, _ = make_agent([*steps(3), "end"], tools=[step])

    state = ask(agent, "go", limits={"total_tokens": 25}).state["limits"]

    assert (state["limit"], state["allowed"]) == ("total_tokens", 25)
    assert (state["spent"]["turns"], state["spent"]["total_tokens"]) == (2, 30)


def test_a_budget_spans_calls(ask, make_agent, counted):
    """Conformance 133."""
    step, _ = counted
    agent, model = make_agent([*steps(4), "end"], tools=[step])
    budget = Budget(turns=3)

    ask(agent, "go", limits=budget)
    result = ask(agent, "on", limits=budget)

    assert (result.stop_reason, model.calls, str(result)) == ("limit_turns", 3, "step 2\n")


# -- sub-agents --------------------------------------------------------------------------------------------------


def with_sub_agent(make_agent):
    """An agent that asks a sub-agent for ever, which goes on for ever itself: 15 tokens for each turn."""

    @tool
    def step() -> str:
        """Takes a step."""
        return "done"

    inner, inner_model = make_agent(lambda _: use("step", {}), tools=[step], name="inner", description="Helps.")
    outer, outer_model = make_agent(lambda _: use("inner", {"input": "help"}), tools=[inner], name="outer")
    return outer, outer_model, inner_model


def test_a_budget_holds_for_sub_agents_and_tells_who_spent_what(ask, make_agent):
    """Conformance 129."""
    agent, outer, inner = with_sub_agent(make_agent)
    budget = Budget(turns=5)

    result = ask(agent, "go", limits=budget)

    assert (result.stop_reason, outer.calls, inner.calls) == ("limit_turns", 1, 4)
    assert {name: spent.turns for name, spent in budget.spent.items()} == {"outer": 1, "inner": 4}
    assert_valid_history(agent.messages)


def test_tokens_of_a_call_are_those_of_its_sub_agents_too(ask, make_agent):
    """Conformance 130."""
    agent, outer, inner = with_sub_agent(make_agent)
    result = ask(agent, "go", limits={"total_tokens": 60})
    assert (result.stop_reason, outer.calls, inner.calls) == ("limit_total_tokens", 1, 3)
    assert_valid_history(agent.messages)
