"""A policy of the process holds for the agents that other agents use as tools."""

from __future__ import annotations

import pytest

from ropewalk.kits.calls.verdicts import Refuse
from ropewalk_testing import assert_valid_history, use


async def no_danger(moment, subject, agent):
    if moment == "before_tool_call" and subject.tool.tool_name == "danger":
        return Refuse("no danger here")

    return None


@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize("plugins", [None, [], ["-guard"]])
async def test_a_tool_of_a_sub_agent_is_denied(govern, make_agent, tools, results, preserve, plugins):
    govern(no_danger)
    child = make_agent(use("danger", {}, id="C1"), "could not", name="child", plugins=plugins)
    parent = make_agent(use("child", {"input": "x"}, id="P1"), "done")
    parent.tool_registry.add(child.as_tool(preserve_context=preserve))

    assert str(await parent.invoke_async("Go.")) == "done\n"

    assert results(parent) == {"P1": ("success", "could not")}
    assert tools.danger.ran == []
    asked = child.model.requests[1].messages[-1]["content"][0]["toolResult"]
    assert (asked["status"], asked["content"]) == ("error", [{"text": "DENIED: no danger here"}])
    assert_valid_history(parent.messages)


async def test_the_sub_agent_itself_is_denied_as_a_tool(govern, make_agent, results):
    async def no_child(moment, subject, agent):
        if moment == "before_tool_call" and subject.tool.tool_name == "child":
            return Refuse("no helpers")

        return None

    govern(no_child)
    child = make_agent("never", name="child")
    parent = make_agent(use("child", {"input": "x"}, id="P1"), "done")
    parent.tool_registry.add(child.as_tool())

    await parent.invoke_async("Go.")

    assert results(parent) == {"P1": ("error", "DENIED: no helpers")}
    assert child.model.calls == 0


async def test_the_input_of_a_sub_agent_is_judged_as_an_invocation(govern, make_agent, results):
    async def no_secrets(moment, subject, agent):
        if moment == "before_invocation" and "secret" in subject.messages[0]["content"][0]["text"]:
            return Refuse("no secrets")

        return None

    govern(no_secrets)
    child = make_agent("never", name="child")
    parent = make_agent(use("child", {"input": "the secret"}, id="P1"), "done")
    parent.tool_registry.add(child.as_tool())

    await parent.invoke_async("Go.")

    assert results(parent) == {"P1": ("success", "DENIED: no secrets")}
    assert child.model.calls == 0
