from __future__ import annotations

import pytest
from pydantic import BaseModel

from ropewalk import Agent, RopewalkError, tool
from ropewalk_structured import OutputModelError, StructuredPlugin
from ropewalk_testing import PluginContract, ScriptedModel, use

GOOD = {"n": 1, "s": "x"}
HOT = ("around_invocation", "around_model_call", "around_tools", "around_tool_call", "decide_stop", "decide_continue")


class Other(BaseModel):
    word: str


class TestContract(PluginContract):
    plugin = StructuredPlugin


def own_links(agent):
    """The hooks in which an agent has a link of this distribution."""
    return [
        hook
        for hook in HOT
        if any(link.plugin_name.startswith("structured") for link in getattr(agent.hooks.plan, hook))
    ]


# -- cost ----------------------------------------------------------------------------------------------------------


async def test_an_agent_that_is_not_asked_has_no_link(make_agent):
    agent, model = make_agent(["hi"])
    await agent.invoke_async("go")

    assert own_links(agent) == []
    assert model.requests[0].tool_specs == ()


async def test_a_prompt_alone_adds_no_link(make_agent):
    agent, _ = make_agent(["hi"], structured_output_prompt="Fill it in.")
    await agent.invoke_async("go")
    assert own_links(agent) == []


async def test_a_call_with_an_output_model_adds_the_links_once(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD), use("P", GOOD), "plain"])
    await agent.invoke_async("go", structured_output_model=pair)
    hooks = agent.hooks
    await agent.invoke_async("go", structured_output_model=pair)
    plain = await agent.invoke_async("go")

    assert own_links(agent) == list(HOT)
    assert agent.hooks is hooks
    assert (str(plain), plain.structured_output) == ("plain\n", None)


# -- agent and call -------------------------------------------------------------------------------------------------


async def test_the_call_s_output_model_wins(make_agent, pair):
    agent, model = make_agent([use("Other", {"word": "a"}), use("P", GOOD)], structured_output_model=pair)

    assert (await agent.invoke_async("go", structured_output_model=Other)).structured_output == Other(word="a")
    assert (await agent.invoke_async("go")).structured_output == pair(n=1, s="x")
    assert [[spec["name"] for spec in request.tool_specs] for request in model.requests] == [["Other"], ["P"]]


@pytest.mark.parametrize(
    ("of_agent", "of_call", "asked"),
    [
        (None, None, "You must format the previous response as structured output."),
        ("Agent's.", None, "Agent's."),
        (None, "Call's.", "Call's."),
        ("Agent's.", "Call's.", "Call's."),
    ],
)
async def test_the_call_s_prompt_wins(make_agent, pair, of_agent, of_call, asked):
    agent, model = make_agent(["one", use("P", GOOD)], structured_output_prompt=of_agent, structured_output_model=pair)
    await agent.invoke_async("go", structured_output_prompt=of_call)

    assert model.requests[1].messages[-1] == {"role": "user", "content": [{"text": asked}]}


async def test_the_agent_s_prompt_serves_the_call_s_model(make_agent, pair):
    agent, model = make_agent(["one", use("P", GOOD)], structured_output_prompt="Fill it in.")
    await agent.invoke_async("go", structured_output_model=pair)

    assert model.requests[1].messages[-1]["content"] == [{"text": "Fill it in."}]


async def test_a_clone_has_the_output_model_too(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD), use("P", GOOD)], structured_output_model=pair)
    await agent.invoke_async("go")

    assert (await agent.clone().invoke_async("go")).structured_output == pair(n=1, s="x")


async def test_a_result_that_is_no_model_shows_as_json(make_agent, pair):
    agent, _ = make_agent([use("list_P", {"value": [GOOD]})])
    result = await agent.invoke_async("go", structured_output_model=list[pair])

    assert result.structured_output == [pair(n=1, s="x")]
    assert str(result) == '[{"n": 1, "s": "x"}]'


# -- refused before any work ------------------------------------------------------------------------------------------


@tool(name="P")
def taken() -> str:
    """Has the name of the output model."""
    return "no"


async def test_a_tool_of_the_same_name_is_refused(make_agent, pair):
    for given, options in (({"structured_output_model": pair}, {}), ({}, {"structured_output_model": pair})):
        agent, model = make_agent(["hi"], tools=[taken], **given)
        with pytest.raises(ValueError, match="Tool 'P' already exists"):
            await agent.invoke_async("go", **options)

        assert model.calls == 0
        assert agent.messages == []


async def test_another_output_model_of_the_call_gets_around_a_taken_name(make_agent, pair):
    agent, _ = make_agent([use("Other", {"word": "a"})], tools=[taken], structured_output_model=pair)
    assert (await agent.invoke_async("go", structured_output_model=Other)).structured_output == Other(word="a")


@pytest.mark.parametrize("value", ["P", 3, object(), {"type": "object"}, print])
async def test_what_is_no_output_model_is_refused(make_agent, value):
    with pytest.raises(TypeError, match="structured_output_model"):
        make_agent([], structured_output_model=value)

    agent, model = make_agent(["hi"])
    with pytest.raises(OutputModelError):
        await agent.invoke_async("go", structured_output_model=value)

    assert model.calls == 0
    assert agent.messages == []


@pytest.mark.parametrize(("value", "error"), [(3, TypeError), ("  ", ValueError), ("", ValueError)])
async def test_what_is_no_prompt_is_refused(make_agent, pair, value, error):
    with pytest.raises(error, match="structured_output_prompt is"):
        make_agent([], structured_output_prompt=value)

    agent, _ = make_agent(["hi"], structured_output_model=pair)
    with pytest.raises(error, match="structured_output_prompt is"):
        await agent.invoke_async("go", structured_output_prompt=value)

    assert agent.messages == []


async def test_a_call_s_prompt_without_an_output_model_is_refused(make_agent):
    agent, _ = make_agent(["hi"])
    with pytest.raises(ValueError, match="without an output model: give structured_output_model too"):
        await agent.invoke_async("go", structured_output_prompt="Fill it in.")


def test_a_number_of_attempts_below_one_is_refused():
    with pytest.raises(RopewalkError, match="max_attempts"):
        Agent(ScriptedModel([]), plugins=[("structured", {"max_attempts": 0})])


async def test_the_methods_of_an_agent_without_the_plugin_name_it(pair):
    agent = Agent(ScriptedModel([]), plugins=["-structured"])
    with pytest.raises(RopewalkError, match="structured"):
        await agent.structured_output_async(pair, "go")
