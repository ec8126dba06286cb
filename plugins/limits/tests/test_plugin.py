"""Limits and budgets with agents."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from ropewalk import Agent, hookimpl
from ropewalk.errors import ModelThrottledException, PluginError
from ropewalk_limits import Budget, LimitsPlugin, Spent
from ropewalk_limits.plugin import LimitsEnforcer
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


class Probe:
    """A tool that runs a body of the test."""

    def __init__(self, body=None, name="probe"):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        self.body = body

    async def invoke(self, call):
        answer = self.body() if self.body is not None else "ok"
        text = str(await answer if asyncio.iscoroutine(answer) else answer)
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def endless(request):
    return turn("on", use("probe"), usage=(10, 5))


def agent_of(script=endless, body=None, **parameters):
    return Agent(model=ScriptedModel(script), tools=[Probe(body)], callback_handler=None, **parameters)


PRICED = ("limits", {"prices": {"scripted": {"input": 1_000_000, "output": 0}}})  # 10 for each turn of `endless`

# -- each limit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "stop", "turns"),
    [
        ({"turns": 2}, "limit_turns", 2),
        ({"turns": 1}, "limit_turns", 1),
        ({"total_tokens": 45}, "limit_total_tokens", 3),
        ({"total_tokens": 46}, "limit_total_tokens", 4),
        ({"output_tokens": 10}, "limit_output_tokens", 2),
        ({"tool_calls": 3}, "limit_tool_calls", 3),
        ({"cost": 20}, "limit_cost", 2),
        ({"cost": 20.5}, "limit_cost", 3),
    ],
    ids=str,
)
async def test_a_call_ends_before_the_turn_that_has_no_budget(limits, stop, turns):
    agent = agent_of(plugins=[PRICED])

    result = await agent.invoke_async("go", limits=limits)

    assert (result.stop_reason, agent.model.calls) == (stop, turns)
    assert result.message == agent.messages[-2]
    assert result.message["role"] == "assistant"
    assert agent.messages[-1]["content"][0]["toolResult"]["status"] == "success"
    assert_valid_history(agent.messages)


async def test_seconds_are_those_since_the_call_began(clock):
    def body():
        clock.now += 4

    agent = agent_of(body=body)
    result = await agent.invoke_async("go", limits={"seconds": 8})

    assert (result.stop_reason, agent.model.calls) == ("limit_seconds", 2)
    assert result.state["limits"]["spent"]["seconds"] == 8


async def test_an_answer_within_the_limits_is_an_answer():
    agent = agent_of([use("probe"), "done"])
    result = await agent.invoke_async("go", limits={"turns": 2, "total_tokens": 1000})
    assert (result.stop_reason, str(result), result.state) == ("end_turn", "done\n", {})


async def test_several_limits_are_told_in_their_order(clock):
    def body():
        clock.now += 1

    order = ["turns", "total_tokens", "output_tokens", "seconds", "tool_calls", "cost"]
    limits = {"turns": 1, "total_tokens": 15, "output_tokens": 5, "seconds": 1, "tool_calls": 1, "cost": 10}
    for name in order:
        result = await agent_of(body=body, plugins=[PRICED]).invoke_async("go", limits=limits)
        assert result.stop_reason == f"limit_{name}"
        del limits[name]


async def test_the_result_says_which_limit_and_what_was_spent():
    agent = agent_of(name="worker")
    result = await agent.invoke_async("go", limits={"turns": 2})

    told = result.state["limits"]
    spent = {"turns": 2, "output_tokens": 10, "total_tokens": 30, "tool_calls": 2, "cost": 0.0}
    assert (told["limit"], told["allowed"]) == ("turns", 2)
    assert {**told["spent"], "seconds": 0} == {**spent, "seconds": 0}
    assert list(told["by_agent"]) == ["worker"]
    assert json.loads(json.dumps(told)) == told


async def test_a_repeated_attempt_spends_tokens_and_no_turn():
    slow = turn("half", error=ModelThrottledException("slower"), usage=(10, 5))

    class Again:
        name = "again"

        @hookimpl
        async def decide_retry(self):
            return 0.0

    agent = agent_of([slow, slow, use("probe"), "done"], plugins=[Again(), "-retry"])
    budget = Budget()
    result = await agent.invoke_async("go", limits=budget)

    assert result.stop_reason == "end_turn"
    assert budget.total.turns == 2
    assert budget.total.total_tokens == result.metrics.accumulated_usage["totalTokens"]


# -- whose budget ------------------------------------------------------------------------------------------------


async def test_each_call_has_a_fresh_budget():
    agent = agent_of()
    for _ in range(3):
        result = await agent.invoke_async("go", limits={"turns": 2})
        assert result.state["limits"]["spent"]["turns"] == 2

    assert agent.model.calls == 6


async def test_a_call_without_limits_has_none_also_after_one_that_had_some():
    agent = agent_of([use("probe"), use("probe"), use("probe"), "done"])
    assert (await agent.invoke_async("go", limits={"turns": 1})).stop_reason == "limit_turns"
    assert (await agent.invoke_async()).stop_reason == "end_turn"


async def test_a_budget_spans_calls_and_agents_and_tells_who_spent_what():
    budget = Budget(turns=5)
    first, second = agent_of([use("probe"), "done"], name="first"), agent_of(name="second")

    assert (await first.invoke_async("go", limits=budget)).stop_reason == "end_turn"
    result = await second.invoke_async("go", limits=budget)

    assert result.stop_reason == "limit_turns"
    assert {name: (spent.turns, spent.tool_calls) for name, spent in budget.spent.items()} == {
        "first": (2, 1),
        "second": (3, 3),
    }
    again = await first.invoke_async("more", limits=budget)
    assert (again.stop_reason, again.message["content"]) == ("limit_turns", [{"text": "done"}])
    assert budget.total.turns == 5


async def test_what_was_spent_counts_also_when_the_call_fails():
    budget = Budget(total_tokens=1000)
    agent = agent_of([use("probe"), ValueError("broken")])
    with pytest.raises(ValueError, match="broken"):
        await agent.invoke_async("go", limits=budget)

    assert (budget.total.turns, budget.total.tool_calls, budget.total.total_tokens) == (2, 1, 15)


async def test_a_turn_that_another_plugin_prevents_is_not_spent():
    from ropewalk import Stop

    class Halt:
        name = "halt"
        order = 1000

        @hookimpl
        async def decide_stop(self, cycle):
            return Stop("end_turn") if cycle.index else None

    budget = Budget(turns=5)
    await agent_of(plugins=[Halt()]).invoke_async("go", limits=budget)
    assert budget.total.turns == 1


async def test_agents_that_run_at_once_begin_no_more_turns_than_there_are():
    budget = Budget(turns=7)

    async def step():
        await asyncio.sleep(0)

    agents = [agent_of(body=step) for _ in range(5)]
    results = await asyncio.gather(*(agent.invoke_async("go", limits=budget) for agent in agents))

    assert sum(agent.model.calls for agent in agents) == 7
    assert {result.stop_reason for result in results} == {"limit_turns"}
    assert budget.total.turns == 7


def test_agents_in_threads_share_a_budget():
    budget = Budget(turns=20)
    agents = [agent_of() for _ in range(6)]
    threads = [threading.Thread(target=agent, args=("go",), kwargs={"limits": budget}) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(agent.model.calls for agent in agents) == budget.total.turns == 20


# -- agents that tools call --------------------------------------------------------------------------------------


async def nested(limits, inner_script=endless, outer_script=endless, **given):
    inner = agent_of(inner_script, name="inner")

    async def delegate():
        return (await inner.invoke_async("sub", **given)).stop_reason

    outer = agent_of(outer_script, body=delegate, name="outer")
    return outer, inner, await outer.invoke_async("go", limits=limits)


async def test_a_shared_budget_reaches_the_agents_that_tools_call():
    budget = Budget(turns=4)
    outer, inner, result = await nested(budget)

    assert (outer.model.calls, inner.model.calls) == (1, 3)
    assert result.stop_reason == "limit_turns"
    assert {name: spent.turns for name, spent in budget.spent.items()} == {"outer": 1, "inner": 3}
    assert outer.messages[-1]["content"][0]["toolResult"]["content"] == [{"text": "limit_turns"}]


async def test_a_budget_that_is_given_on_as_well_counts_once():
    budget = Budget(total_tokens=60)
    inner = agent_of(name="inner")

    async def delegate():
        return (await inner.invoke_async("sub", limits=budget)).stop_reason

    outer = agent_of(body=delegate, name="outer")
    await outer.invoke_async("go", limits=budget)
    assert budget.total.total_tokens == 15 * (outer.model.calls + inner.model.calls) == 60


async def test_tokens_of_a_calls_own_limits_are_those_of_the_agents_that_its_tools_call_too():
    outer, inner, result = await nested({"total_tokens": 75})
    assert (outer.model.calls, inner.model.calls) == (1, 4)
    assert result.stop_reason == "limit_total_tokens"
    assert list(result.state["limits"]["by_agent"]) == ["outer", "inner"]


async def test_turns_and_tool_calls_of_a_calls_own_limits_are_its_own():
    script = [use("probe"), use("probe"), "done"]
    outer, inner, result = await nested({"turns": 2, "tool_calls": 2}, inner_script=script * 2)
    assert (outer.model.calls, result.stop_reason) == (2, "limit_turns")
    assert outer.messages[2]["content"][0]["toolResult"]["content"] == [{"text": "end_turn"}]
    assert inner.model.calls == 6


async def test_an_agent_that_a_tool_calls_may_have_limits_of_its_own():
    budget = Budget(total_tokens=1000)
    inner = agent_of(name="inner")

    async def delegate():
        return (await inner.invoke_async("sub", limits={"turns": 2})).stop_reason

    outer = agent_of([use("probe"), "done"], body=delegate, name="outer")
    assert (await outer.invoke_async("go", limits=budget)).stop_reason == "end_turn"
    assert inner.model.calls == 2
    assert budget.spent["inner"].turns == 2


async def test_sync_tools_in_threads_are_part_of_the_call_too():
    from ropewalk.kits.aio.threads import in_thread

    inner = agent_of(name="inner")
    budget = Budget(turns=3)

    async def delegate():
        return (await in_thread(inner, "sub")).stop_reason

    outer = agent_of(body=delegate, name="outer")
    await outer.invoke_async("go", limits=budget)
    assert {name: spent.turns for name, spent in budget.spent.items()} == {"outer": 1, "inner": 2}


async def test_what_runs_beside_a_call_is_no_part_of_it():
    budget = Budget(turns=1)
    other = agent_of(["done"] * 5, name="other")
    stream = agent_of(name="first").stream_async("go", limits=budget)
    async for event in stream:
        if "message" in event:
            await other.invoke_async("go")

    assert list(budget.spent) == ["first"]


# -- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        {"turns": 0},
        {"turns": True},
        {"turns": 1.5},
        {"tokens": 3},
        {"seconds": -1},
        5,
        "turns",
        [("turns", 3)],
        ...,
    ],
    ids=repr,
)
async def test_limits_that_are_none_are_refused_before_any_work(limits):
    """Conformance 131."""
    agent = agent_of()
    with pytest.raises(TypeError, match="limits="):
        await agent.invoke_async("go", limits=limits)

    assert (agent.model.calls, list(agent.messages)) == (0, [])


@pytest.mark.parametrize("limits", [{"cost": 1}, Budget(cost=1)], ids=repr)
async def test_a_cost_without_prices_is_refused_before_any_work(limits):
    agent = agent_of(name="poor")
    with pytest.raises(ValueError, match="the cost cannot be limited without prices"):
        await agent.invoke_async("go", limits=limits)

    assert (agent.model.calls, list(agent.messages)) == (0, [])


async def test_the_cost_of_a_model_without_a_price_is_refused_before_it_is_called():
    agent = agent_of(plugins=[("limits", {"prices": {"other": {"input": 1, "output": 1}}})])
    with pytest.raises(ValueError, match="have no model 'scripted'"):
        await agent.invoke_async("go", limits={"cost": 1})

    assert (agent.model.calls, list(agent.messages)) == (0, [])


async def test_a_model_that_takes_over_during_the_call_has_a_price_or_is_refused():
    def swap():
        agent.model = Other()

    class Other(ScriptedModel):
        model_id = "other"

        def __init__(self):
            super().__init__(endless)

    agent = agent_of(body=swap, plugins=[PRICED])
    with pytest.raises(ValueError, match="have no model 'other'"):
        await agent.invoke_async("go", limits={"cost": 1000})

    assert agent.model.calls == 0


async def test_prices_may_be_a_function_and_reach_the_agents_that_tools_call():
    def price(model, usage):
        return usage["inputTokens"] / 10

    inner = agent_of(name="inner")

    async def delegate():
        return (await inner.invoke_async("sub")).stop_reason

    outer = agent_of(body=delegate, name="outer", plugins=[("limits", {"prices": price})])
    result = await outer.invoke_async("go", limits={"cost": 3})
    assert result.stop_reason == "limit_cost"
    assert (outer.model.calls, inner.model.calls) == (1, 2)


@pytest.mark.parametrize("prices", ["cheap", {"m": {"input": 1}}, {"m": 3}, {"m": {"input": -1, "output": 1}}], ids=str)
def test_prices_that_are_none_are_refused(prices):
    with pytest.raises(PluginError, match="options of plugin 'limits' are wrong: prices"):
        Agent(plugins=[("limits", {"prices": prices})])


# -- what it costs others ----------------------------------------------------------------------------------------


async def test_an_agent_that_was_never_limited_has_no_hook_in_its_cycles():
    agent = agent_of(["done"])
    await agent.invoke_async("go")

    assert not agent.hooks.plan.decide_stop
    assert [type(p) for p in agent.hooks.plugins if p.name.startswith("limits")] == [LimitsPlugin]


async def test_what_enforces_limits_is_added_once():
    agent = agent_of(["done"] * 4)
    for _ in range(3):
        await agent.invoke_async("go", limits={"turns": 1})

    assert sum(isinstance(plugin, LimitsEnforcer) for plugin in agent.hooks.plugins) == 1


async def test_a_clone_of_a_limited_agent_can_be_limited():
    agent = agent_of()
    await agent.invoke_async("go", limits={"turns": 1})
    result = await agent.clone().invoke_async("go", limits={"turns": 2})
    assert result.state["limits"]["spent"]["turns"] == 2


def test_spent_is_a_value():
    assert Spent(turns=1) + Spent(turns=2, cost=1) == Spent(turns=3, cost=1)
