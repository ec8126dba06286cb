"""A tool that a policy denies does not run, whatever the agent's configuration and plugins do about it."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import ToolsOutcome
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk_testing import assert_valid_history, use

DENIED = ("error", "DENIED: no danger here")


async def no_danger(moment, subject, agent):
    """Looks at the tool that will run and at its arguments."""
    if moment == "before_tool_call" and (subject.tool.tool_name == "danger" or subject.tool_use["input"].get("danger")):
        return Refuse("no danger here")

    return None


async def run(agent):
    result = await agent.invoke_async("Go.")
    assert_valid_history(agent.messages)
    return result


async def test_it_gets_one_error_result_and_the_run_goes_on(govern, make_agent, tools, results):
    govern(no_danger)
    agent = make_agent([use("danger", {}, id="T1"), use("safe", {}, id="T2")], "done")

    result = await run(agent)

    assert (result.stop_reason, str(result)) == ("end_turn", "done\n")
    assert results(agent) == {"T1": DENIED, "T2": ("success", "ran")}
    assert (tools.danger.ran, tools.safe.ran) == ([], [{}])


async def calls_on(self, call, call_next):
    return await call_next(call)


async def allows(self, moment, subject):
    return None


async def replaces_by_itself(self, moment, subject):
    return Replace(subject) if moment == "before_tool_call" else None


@pytest.mark.parametrize("order", [-1_000_000, float("-inf"), 1_000_000])
@pytest.mark.parametrize(
    "body", [{"around_tool_call": calls_on}, {"intervene": allows}, {"intervene": replaces_by_itself}]
)
async def test_no_order_gets_in_front(govern, make_agent, tools, results, plugin, order, body):
    govern(no_danger)
    agent = make_agent(use("danger", {}, id="T1"), "done", plugins=[plugin("early", first=True, order=order, **body)])

    await run(agent)

    assert results(agent) == {"T1": DENIED}
    assert tools.danger.ran == []


async def test_a_tool_that_a_hook_puts_in_the_place_of_an_allowed_one_is_denied(
    govern, make_agent, tools, results, plugin
):
    async def around_tool_call(self, call, call_next):
        return await call_next(call.with_tool(tools.danger))

    govern(no_danger)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("swap", around_tool_call=around_tool_call)])

    await run(agent)

    assert results(agent) == {"T1": DENIED}
    assert (tools.danger.ran, tools.safe.ran) == ([], [])


async def test_arguments_that_a_hook_puts_in_are_denied(govern, make_agent, tools, results, plugin):
    async def around_tool_call(self, call, call_next):
        return await call_next(call.with_input({"danger": True}))

    govern(no_danger)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("swap", around_tool_call=around_tool_call)])

    await run(agent)

    assert results(agent) == {"T1": DENIED}
    assert tools.safe.ran == []


@pytest.mark.parametrize(
    "change", [lambda call, tools: call.with_tool(tools.danger), lambda call, _: call.with_input({"danger": 1})]
)
async def test_what_an_intervener_replaces_the_call_by_is_denied(govern, make_agent, tools, results, plugin, change):
    async def intervene(self, moment, subject):
        return Replace(change(subject, tools)) if moment == "before_tool_call" else None

    govern(no_danger)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("swap", first=True, intervene=intervene)])

    await run(agent)

    assert results(agent) == {"T1": DENIED}
    assert (tools.danger.ran, tools.safe.ran) == ([], [])


async def test_arguments_that_are_written_to_while_the_policy_thinks_do_not_run(govern, make_agent, tools, plugin):
    async def slow(moment, subject, agent):
        verdict = await no_danger(moment, subject, agent)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return verdict

    async def around_tool_call(self, call, call_next):
        running = asyncio.ensure_future(call_next(call))
        await asyncio.sleep(0)
        call.tool_use["input"]["danger"] = True
        call.tool = tools.danger
        return await running

    govern(slow)
    agent = make_agent(
        use("safe", {"danger": False}, id="T1"), "done", plugins=[plugin("late", around_tool_call=around_tool_call)]
    )

    await run(agent)

    assert (tools.danger.ran, tools.safe.ran) == ([], [{"danger": False}])


async def test_each_attempt_is_asked_about(govern, make_agent, tools, results, plugin):
    seen = []

    async def once(moment, subject, agent):
        if moment == "before_tool_call":
            seen.append(subject.tool_use["toolUseId"])
            return Refuse("once is enough") if len(seen) > 1 else None

        return None

    async def around_tool_call(self, call, call_next):
        await call_next(call)
        return await call_next(call)

    govern(once)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("twice", around_tool_call=around_tool_call)])

    await run(agent)

    assert (seen, len(tools.safe.ran)) == (["T1", "T1"], 1)
    assert results(agent) == {"T1": ("error", "DENIED: once is enough")}


async def test_an_executor_cannot_run_a_denied_tool(govern, make_agent, tools, results, plugin):
    async def execute_tools(self, batch, run_tool):
        return [await run_tool(call.with_tool(tools.danger)) for call in batch.calls]

    govern(no_danger)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("runner", execute_tools=execute_tools)])

    await run(agent)

    assert results(agent) == {"T1": DENIED}
    assert tools.danger.ran == []


async def test_a_policy_may_replace_what_runs(govern, make_agent, tools, results):
    async def milder(moment, subject, agent):
        return Replace(subject.with_tool(tools.safe)) if moment == "before_tool_call" else None

    govern(milder)
    agent = make_agent(use("danger", {"a": 1}, id="T1"), "done")

    await run(agent)

    assert (tools.danger.ran, tools.safe.ran) == ([], [{"a": 1}])


async def test_what_the_gates_are_shown(govern, make_agent, tools):
    seen = []

    async def note(moment, subject, agent):
        seen.append((moment, type(subject).__name__))

    govern(note)
    agent = make_agent(use("safe", {}, id="T1"), "done")

    await run(agent)

    assert seen == [
        ("before_invocation", "Invocation"),
        ("before_model_call", "ModelRequest"),
        ("after_model_call", "ModelOutcome"),
        ("before_tool_call", "ToolCall"),
        ("after_tool_call", "dict"),
        ("before_model_call", "ModelRequest"),
        ("after_model_call", "ModelOutcome"),
    ]


# -- results -----------------------------------------------------------------------------------------------------


async def no_secrets(moment, subject, agent):
    if moment == "after_tool_call" and "secret" in str(subject["content"]):
        return Refuse("a secret")

    return None


WITHHELD = {"T1": ("error", "DENIED: a secret")}


async def test_a_result_is_withheld_from_model_and_history(govern, make_agent, tools, results):
    tools.safe.answer = "the secret"
    govern(no_secrets)
    agent = make_agent(use("safe", {}, id="T1"), "done")

    await run(agent)

    assert results(agent) == WITHHELD
    assert "the secret" not in str(agent.messages) + str(agent.model.requests)


def secret_result(call):
    return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "the secret"}]}


async def changes_the_result(self, call, call_next):
    await call_next(call)
    return secret_result(call)


async def writes_to_the_result(self, call, call_next):
    result = await call_next(call)
    result["content"][0]["text"] = "the secret"
    return result


async def answers_in_its_place(self, call, call_next):
    return secret_result(call)


async def changes_all_results(self, batch, call_next):
    await call_next(batch)
    return ToolsOutcome([secret_result(call) for call in batch.calls])


async def executes_itself(self, batch, run_tool):
    return [secret_result(call) for call in batch.calls]


@pytest.mark.parametrize(
    "body",
    [
        {"around_tool_call": changes_the_result},
        {"around_tool_call": writes_to_the_result},
        {"around_tool_call": answers_in_its_place},
        {"around_tools": changes_all_results},
        {"execute_tools": executes_itself},
    ],
    ids=lambda body: next(iter(body.values())).__name__,
)
async def test_a_result_that_a_hook_changes_after_the_gate_is_looked_at_again(
    govern, make_agent, results, plugin, body
):
    govern(no_secrets)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("hook", **body)])

    await run(agent)

    assert results(agent) == WITHHELD
    assert "the secret" not in str(agent.messages) + str(agent.model.requests)


async def test_a_normal_intervener_does_not_see_what_a_policy_withholds(govern, make_agent, tools, plugin):
    seen = []

    async def intervene(self, moment, subject):
        if moment == "after_tool_call":
            seen.append(subject["content"][0]["text"])

    tools.safe.answer = "the secret"
    govern(no_secrets)
    agent = make_agent(
        use("safe", {}, id="T1"), "done", plugins=[plugin("spy", first=True, order=-9, intervene=intervene)]
    )

    await run(agent)

    assert seen == []


def test_a_direct_call_is_denied_as_well(govern, make_agent, tools):
    govern(no_danger)
    agent = make_agent()

    result = agent.tool.danger()

    assert (result["status"], result["content"]) == ("error", [{"text": "DENIED: no danger here"}])
    assert tools.danger.ran == []


def test_a_direct_call_on_the_way_to_another_tool_is_denied(govern, make_agent, tools, plugin):
    async def around_tool_call(self, call, call_next):
        return await call_next(call.with_tool(tools.danger))

    govern(no_danger)
    agent = make_agent(plugins=[plugin("swap", around_tool_call=around_tool_call)])

    assert agent.tool.safe(record_direct_tool_call=False)["status"] == "error"
    assert tools.danger.ran == []
