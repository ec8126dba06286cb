"""Handlers and policies: a policy sees what handlers made of a call, and nobody talks it out of a refusal."""

from __future__ import annotations

import pytest

from ropewalk import Confirm, Deny, Guide, InterventionHandler, Proceed, Transform
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk_testing import assert_valid_history, use

CALL = use("danger", {"path": "safe"}, id="A")


def handler(moment, act, name="handler"):
    return type("Handler", (InterventionHandler,), {"name": name, moment: lambda self, event: act(event)})()


def yes(result):
    return [{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in result.interrupts]


@pytest.fixture
def no_evil(govern):
    """A policy that refuses calls with the word evil, and notes the inputs that it saw."""
    seen = []

    async def rule(moment, subject, agent):
        if moment != "before_tool_call":
            return None

        seen.append(subject.tool_use["input"])
        return Refuse("evil") if "evil" in str(subject.tool_use["input"]) else None

    govern(rule)
    return seen


async def test_a_policy_judges_the_input_that_a_handler_made(no_evil, make_agent, tools, results):
    def spoil(event):
        event.tool_use["input"]["path"] = "evil"

    agent = make_agent(CALL, "done", interventions=[handler("before_tool_call", lambda event: Transform(spoil))])

    await agent.invoke_async("go")

    assert no_evil == [{"path": "evil"}]
    assert (tools.danger.ran, results(agent)) == ([], {"A": ("error", "DENIED: evil")})
    assert_valid_history(agent.messages)


async def test_a_policy_is_not_asked_about_a_call_that_a_handler_denied(no_evil, make_agent, tools, results):
    agent = make_agent(CALL, "done", interventions=[handler("before_tool_call", lambda event: Deny("no"))])

    await agent.invoke_async("go")

    assert (no_evil, tools.danger.ran, results(agent)) == ([], [], {"A": ("error", "DENIED: no")})


async def test_a_policy_refuses_what_a_human_has_approved(no_evil, make_agent, tools, results):
    agent = make_agent(
        use("danger", {"path": "evil"}, id="A"),
        "done",
        interventions=[handler("before_tool_call", lambda event: Confirm("sure?"))],
    )
    result = await agent.invoke_async("go")
    assert no_evil == []

    await agent.invoke_async(yes(result))

    assert (tools.danger.ran, results(agent)) == ([], {"A": ("error", "DENIED: evil")})


async def test_a_policy_judges_the_request_with_guidance_and_changes(govern, make_agent):
    seen = []

    async def rule(moment, subject, agent):
        if moment == "before_model_call":
            seen.append(str(list(subject.messages)))

    def hide(event):
        event.messages[0]["content"] = [{"text": "(hidden)"}]

    govern(rule)
    agent = make_agent(
        "done",
        interventions=[
            handler("before_model_call", lambda event: Transform(hide), "a"),
            handler("before_model_call", lambda event: Guide("be kind"), "b"),
        ],
    )

    await agent.invoke_async("the secret")

    assert "(hidden)" in seen[-1]
    assert "[b] be kind" in seen[-1]
    assert "secret" not in seen[-1]


async def test_handlers_see_results_that_a_policy_has_let_through_and_the_policy_looks_again(govern, make_agent, tools):
    seen, shown = [], []

    async def rule(moment, subject, agent):
        if moment != "after_tool_call":
            return None

        seen.append(subject["content"][0]["text"])
        if "secret" in seen[-1]:
            return Replace({**subject, "content": [{"text": "(withheld)"}]})

        return Refuse("evil") if "evil" in seen[-1] else None

    def after(event):
        shown.append(event.result["content"][0]["text"])
        return Transform(lambda event: event.result.update(content=[{"text": "evil"}]))

    govern(rule)
    tools.danger.answer = "the secret"
    agent = make_agent(CALL, "done", interventions=[handler("after_tool_call", after)])

    await agent.invoke_async("go")

    assert (shown, seen) == (["(withheld)"], ["the secret", "evil"])
    assert "evil" not in str([block for block in agent.messages[2]["content"] if "DENIED" not in str(block)])


async def test_a_handler_cannot_undo_a_refusal_of_a_policy(govern, make_agent, tools, results):
    async def rule(moment, subject, agent):
        return Refuse("closed") if moment == "before_tool_call" else None

    govern(rule)
    agent = make_agent(CALL, "done", interventions=[handler("before_tool_call", lambda event: Proceed())])

    await agent.invoke_async("go")

    assert (tools.danger.ran, results(agent)) == ([], {"A": ("error", "DENIED: closed")})
