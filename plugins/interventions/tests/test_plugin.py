"""How the plugin comes to an agent."""

from __future__ import annotations

import pytest

from ropewalk import Agent, ModelRequest, current_run
from ropewalk_interventions import Deny, InterventionsPlugin, Proceed


def named(agent):
    return [plugin for plugin in agent.hooks.plugins if plugin.name == "interventions-handlers"]


def test_an_agent_without_handlers_has_no_part_of_it(make_agent):
    assert named(make_agent()) == []
    assert named(Agent(callback_handler=None)) == []
    assert named(Agent(callback_handler=None, interventions=None)) == []
    assert not make_agent().hooks.plan.intervene


def test_agents_do_not_share_handlers(make_agent, handler, danger):
    make_agent(handler(before_tool_call=lambda event: Deny("no")))
    agent = make_agent(handler(before_tool_call=lambda event: Proceed()))

    agent("go")

    assert danger.ran == [{"path": "x"}]


def test_the_name_of_the_plugin_beside_the_handlers_is_fine(make_agent, handler, danger):
    agent = make_agent(handler(before_tool_call=lambda event: Deny("no")), plugins=["interventions"])

    agent("go")

    assert danger.ran == []
    assert len(named(agent)) == 1


def test_a_negative_bound_is_refused():
    with pytest.raises(ValueError, match="max_guidance"):
        InterventionsPlugin.Config(max_guidance=-1)


def test_a_clone_has_the_handlers(make_agent, handler, danger):
    agent = make_agent(handler(before_tool_call=lambda event: Deny("no")))

    agent.clone()("go")

    assert danger.ran == []


async def test_calls_beside_the_conversation_are_judged_and_a_handlers_own_are_not(make_agent, handler):
    seen = []

    async def steer(event):
        text = "".join(block.get("text", "") for block in event.stop_response.message["content"])
        seen.append(text)
        if text == "draft":
            request = ModelRequest([{"role": "user", "content": [{"text": "is it good?"}]}])
            outcome = await current_run().ask_model(request, "judging")
            seen.append(outcome.message["content"][0]["text"])

        return Proceed()

    others = []
    other = handler("other", before_model_call=lambda event: others.append(event.purpose) or Proceed())
    agent = make_agent(handler("steering", after_model_call=steer), other, turns=["draft", "fine"])

    assert str(await agent.invoke_async("go")) == "draft\n"
    assert seen == ["draft", "fine"]
    assert others == ["turn", "judging"]


async def test_the_tokens_of_a_request_can_be_read(make_agent, handler):
    counts = []
    agent = make_agent(
        handler(before_model_call=lambda event: counts.append(event.projected_input_tokens) or Proceed()),
        turns=["hello"],
    )

    await agent.invoke_async("go")

    assert counts[0] > 0
