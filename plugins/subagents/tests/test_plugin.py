from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, MissingPluginError, PluginError, ToolDefinitionError, error_result
from ropewalk_subagents import AgentTool, SubagentsConfig, SubagentsPlugin
from ropewalk_testing import ScriptedModel, use


def test_an_agent_in_tools_is_a_tool_of_its_name(make_agent):
    scout = make_agent(["found"], name="Web scout", description="Finds things")
    agent = make_agent([], tools=[scout])

    assert agent.tool_names == ["Web_scout"]
    tool = agent.tool_registry.get("Web_scout")
    assert isinstance(tool, AgentTool)
    assert (tool.agent, tool.preserve_context, tool.tool_type) == (scout, False, "agent")
    assert tool.tool_spec["description"] == "Finds things"
    assert tool.tool_spec["inputSchema"]["json"]["required"] == ["input"]
    assert repr(tool) == "<tool 'Web_scout': agent 'Web scout'>"


def test_as_tool_takes_a_name_and_a_description(make_agent):
    tool = make_agent([], name="scout").as_tool(name="ask-scout", description="Asks", preserve_context=True)

    assert (tool.tool_name, tool.tool_spec["description"], tool.preserve_context) == ("ask-scout", "Asks", True)
    assert tool.tool_spec["name"] == "ask-scout"


def test_a_description_is_made_up_when_there_is_none(make_agent):
    description = make_agent([], name="scout").as_tool().tool_spec["description"]
    assert description.startswith("Use the scout agent")


def test_an_agent_without_a_name_has_a_legal_one(make_agent):
    assert make_agent([]).as_tool().tool_name == "Ropewalk_Agent"


def test_two_agents_of_one_name_are_refused(make_agent):
    with pytest.raises(ToolDefinitionError, match="'scout' is taken: give one of the two tools another name"):
        make_agent([], tools=[make_agent([], name="scout"), make_agent([], name="scout")])


def test_agents_may_stand_in_nested_lists(make_agent):
    agent = make_agent([], tools=[[make_agent([], name="a"), [make_agent([], name="b")]]])
    assert agent.tool_names == ["a", "b"]


def test_an_illegal_chosen_name_is_refused(make_agent):
    with pytest.raises(ValueError, match="is not allowed"):
        make_agent([]).as_tool(name="has space")


class Remote:
    """An agent of another kind."""

    def __init__(self, tool):
        self.tool = tool

    def as_tool(self):
        return self.tool


class Echo:
    tool_name = "echo"
    tool_spec = {"name": "echo", "description": "Echoes", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        return error_result(call.tool_use["toolUseId"], "echo")


def test_an_agent_of_another_kind_makes_its_tool_itself(make_agent):
    assert make_agent([], tools=[Remote(Echo())]).tool_names == ["echo"]


def test_an_agent_of_another_kind_that_makes_no_tool_is_refused(make_agent):
    with pytest.raises(ToolDefinitionError, match=r"its as_tool\(\) gave 3, which is no tool"):
        make_agent([], tools=[Remote(3)])


def test_the_class_of_an_agent_is_no_tool(make_agent):
    with pytest.raises(ToolDefinitionError):
        make_agent([], tools=[Agent])


def test_other_entries_and_methods_are_left_to_others(make_agent):
    plugin = SubagentsPlugin()

    assert plugin.provide_tool("./x.py") is None
    assert plugin.provide_tool({"as_tool": 1}) is None
    assert plugin.provide_method("add_hook", make_agent([])) is None


def test_an_agent_with_a_session_needs_its_context_preserved():
    class WithSession(Agent):
        session_manager = None

    agent = WithSession(model=ScriptedModel([]), name="scout", callback_handler=None)
    agent.session_manager = object()

    with pytest.raises(ValueError, match=r"'scout' has a session manager.*preserve_context=True"):
        agent.as_tool()

    assert agent.as_tool(preserve_context=True).tool_name == "scout"


def test_without_the_plugin_the_method_says_what_to_do(make_agent):
    with pytest.raises(MissingPluginError, match=r"Agent.as_tool\(\) needs the plugin ropewalk-subagents"):
        make_agent([], plugins=["-subagents"]).as_tool()


def test_without_the_plugin_an_agent_in_tools_is_refused(make_agent):
    with pytest.raises((ToolDefinitionError, MissingPluginError), match="tools= entry"):
        make_agent([], plugins=["-subagents"], tools=[make_agent([], name="scout")])


def test_the_depth_is_an_option(make_agent):
    agent = make_agent([], tools=[make_agent([], name="scout")], plugins=[("subagents", {"max_depth": 2})])

    assert agent.tool_registry.get("scout")._max_depth == 2
    assert SubagentsPlugin()._config == SubagentsConfig(max_depth=8)


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"depth": 3}])
def test_a_wrong_option_is_refused(make_agent, options):
    with pytest.raises(PluginError, match="subagents"):
        make_agent([], plugins=[("subagents", options)])


def test_the_plugin_has_no_part_in_runs(make_agent):
    hooks = make_agent([], plugins=["subagents"]).hooks
    index = next(i for i, plugin in enumerate(hooks.plugins) if plugin.name == "subagents")
    plan = hooks.plan
    present = {hook for hook in plan.__slots__ if any(link.index == index for link in getattr(plan, hook))}

    assert present == {"provide_tool", "provide_method"}


def test_an_agent_may_be_called_through_several_tools(make_agent, results_of):
    scout = make_agent(["one", "two"], name="scout")
    agent = make_agent(
        [[use("first", {"input": "a"}), use("second", {"input": "b"})], "done"],
        tools=[scout.as_tool(name="first", preserve_context=True), scout.as_tool(name="second", preserve_context=True)],
    )

    asyncio.run(agent.invoke_async("go"))

    assert results_of(agent) == [("success", "one"), ("success", "two")]
    assert len(scout.messages) == 4
