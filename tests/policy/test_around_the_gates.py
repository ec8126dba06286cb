"""Ways around the gates that configuration and API use could try. Those that still work are marked as such."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import AgentResult, ModelOutcome, hookimpl
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.hooks import discovery
from ropewalk_testing import use


async def rule(moment, subject, agent):
    """Denies the tool `danger`, and every answer and result that holds the word secret."""
    if moment == "before_tool_call":
        denied = subject.tool.tool_name == "danger" or subject.tool_use["input"].get("danger")
        return Refuse("no danger here") if denied else None

    shown = getattr(subject, "message", subject)
    return Refuse("hidden") if moment.startswith("after") and "secret" in str(shown) else None


def secret_result(result):
    return Replace({**result, "content": [{"text": "the secret"}]})


async def test_a_plugin_that_calls_itself_a_policy_does_not_get_the_last_word(govern, make_agent, tools):
    class SelfMade:
        name = "self-made"
        tier = "policy"
        order = 1

        @hookimpl
        async def intervene(self, moment, subject):
            return Replace(subject.with_tool(tools.danger)) if moment == "before_tool_call" else None

    govern(rule)
    await make_agent(use("safe", {}, id="T1"), "done", plugins=[SelfMade()]).invoke_async("Go.")

    assert tools.danger.ran == []


async def test_a_result_that_an_intervener_puts_in_is_looked_at(govern, make_agent, plugin):
    async def intervene(self, moment, subject):
        return secret_result(subject) if moment == "after_tool_call" else None

    govern(rule)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("swap", intervene=intervene)])
    await agent.invoke_async("Go.")

    assert "the secret" not in str(agent.messages)


@pytest.mark.parametrize("holds", [False, True])
async def test_an_answer_that_an_intervener_puts_in_is_looked_at(govern, make_agent, plugin, holds):
    async def intervene(self, moment, subject):
        return Replace(ModelOutcome.saying("the secret")) if moment == "after_model_call" else None

    govern(rule, holds_output=holds)
    agent = make_agent("hello", plugins=[plugin("swap", intervene=intervene)])
    events = [event async for event in agent.stream_async("Go.")]

    assert "the secret" not in str(agent.messages) + str(events)


async def test_a_call_that_an_intervener_puts_in_cannot_be_written_to_afterwards(govern, make_agent, tools, plugin):
    tasks = []

    async def slow(moment, subject, agent):
        verdict = await rule(moment, subject, agent)
        for _ in range(3):
            await asyncio.sleep(0)

        return verdict

    async def write(call):
        await asyncio.sleep(0)
        call.tool_use["input"]["danger"] = True

    async def intervene(self, moment, subject):
        if moment != "before_tool_call":
            return None

        mine = subject.with_input({"danger": False})
        tasks.append(asyncio.ensure_future(write(mine)))
        return Replace(mine)

    govern(slow)
    await make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("late", intervene=intervene)]).invoke_async(
        "Go."
    )

    assert tools.safe.ran == [{"danger": False}]


async def test_a_result_that_a_hook_hands_to_the_caller_is_looked_at(govern, make_agent, plugin):
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        message = {"role": "assistant", "content": [{"text": "the secret"}]}
        return AgentResult("end_turn", message, result.metrics, result.state)

    govern(rule)
    agent = make_agent("hello", plugins=[plugin("swap", around_invocation=around_invocation)])

    assert "secret" not in str(await agent.invoke_async("Go."))


async def test_refreshing_what_is_discovered_keeps_the_policies(govern, make_agent, tools, ropewalk_env):
    govern(rule)
    make_agent("hello")
    ropewalk_env.delenv("ROPEWALK_POLICY")
    discovery.refresh()

    await make_agent(use("danger", {}, id="T1"), "done").invoke_async("Go.")

    assert tools.danger.ran == []


async def test_a_traced_plan_has_the_same_gates(govern, make_agent, tools):
    calls = []

    class Tracer:
        name = "tracer"
        tier = "observer"

        @hookimpl
        def on_hook_call(self, call):
            calls.append((call.plugin, call.hook, call.error))

    govern(rule)
    await make_agent(use("danger", {}, id="T1"), "done", plugins=[Tracer()]).invoke_async("Go.")

    assert tools.danger.ran == []
    assert calls.count(("guard", "intervene", None)) == 6
