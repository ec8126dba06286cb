"""Agents as tools of other agents (conformance 64 to 68)."""

from __future__ import annotations

import pydantic
import pytest

from ropewalk import Agent, Budget, ToolDefinitionError, hookimpl, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


def texts_of(messages):
    return [block["text"] for message in messages for block in message["content"] if "text" in block]


@pytest.mark.parametrize(
    ("name", "tool_name"), [("researcher", "researcher"), ("Web research", "Web_research"), ("a.b/c", "a_b_c")]
)
def test_an_agent_in_tools_is_a_tool_named_as_the_agent(ask, make_agent, tool_results, name, tool_name):
    """Conformance 64."""
    child, child_model = make_agent(["found it"], name=name, description="Finds things")
    agent, model = make_agent([use(tool_name, {"input": "find"}), "done"], tools=[child])

    result = ask(agent, "go")

    assert agent.tool_names == [tool_name]
    assert (str(result), child_model.calls) == ("done\n", 1)
    assert texts_of(child_model.requests[0].messages) == ["find"]
    spec = model.requests[0].tool_specs[0]
    assert (spec["name"], spec["description"]) == (tool_name, "Finds things")
    assert spec["inputSchema"]["json"]["properties"]["input"]["type"] == "string"
    assert spec["inputSchema"]["json"]["required"] == ["input"]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "found it"}]
    assert_valid_history(agent.messages)


def test_names_may_be_given_and_must_be_legal(make_agent):
    """Conformance 64."""
    child, _ = make_agent([], name="researcher")

    assert child.as_tool(name="look-up", description="Looks up").tool_spec["description"] == "Looks up"
    for name in ("", "has space", "名前", "x" * 65):
        with pytest.raises(ValueError, match="is not allowed"):
            child.as_tool(name=name)


def test_agents_whose_names_clash_are_refused(make_agent):
    """Conformance 62 and 64."""
    one, two = (make_agent([], name=name)[0] for name in ("look up", "look-up"))

    with pytest.raises(ToolDefinitionError, match="look"):
        make_agent([], tools=[one, two])


def test_the_context_is_reset_by_default(ask, make_agent):
    """Conformance 65."""
    child, child_model = make_agent(
        ["one", "two"], name="child", messages=[{"role": "user", "content": [{"text": "A"}]}]
    )
    agent, _ = make_agent([use("child", {"input": "B"}), use("child", {"input": "C"}), "done"], tools=[child.as_tool()])

    ask(agent, "go")

    assert [texts_of(request.messages) for request in child_model.requests] == [["A", "B"], ["A", "C"]]
    assert texts_of(child.messages) == ["A"]


def test_the_context_is_reset_whatever_the_agent_did_meanwhile(ask, make_agent):
    """Conformance 65."""
    child, child_model = make_agent(["mine", "one"], name="child", state={"n": 1})
    seen = []

    class Reader:
        name = "reader"

        @hookimpl
        async def around_invocation(self, invocation, call_next, agent):
            seen.append(agent.state.get("n"))
            return await call_next(invocation)

    child.add_plugin(Reader())
    agent, _ = make_agent([use("child", {"input": "B"}), "done"], tools=[child])
    child("talk")
    child.state.set("n", 2)

    ask(agent, "go")

    assert seen == [1, 1]
    assert texts_of(child_model.requests[1].messages) == ["B"]
    assert (texts_of(child.messages), child.state.get("n")) == (["talk", "mine"], 2)


def test_preserve_context_keeps_it(ask, make_agent):
    """Conformance 65."""
    child, child_model = make_agent(["one", "two"], name="child")
    agent, _ = make_agent(
        [use("child", {"input": "B"}), use("child", {"input": "C"}), "done"],
        tools=[child.as_tool(preserve_context=True)],
    )

    ask(agent, "go")

    assert texts_of(child_model.requests[1].messages) == ["B", "one", "C"]
    assert texts_of(child.messages) == ["B", "one", "C", "two"]
    assert_valid_history(child.messages)


@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [(RuntimeError("no network"), "RuntimeError - no network"), (ValueError("bad"), "ValueError - bad")],
)
def test_an_exception_in_the_sub_agent_is_an_error_result(ask, make_agent, tool_results, preserve, error, told):
    """Conformance 67."""
    child, child_model = make_agent([error, "fine"], name="child")
    agent, _ = make_agent(
        [use("child", {"input": "B"}), use("child", {"input": "C"}), "done"],
        tools=[child.as_tool(preserve_context=preserve)],
    )

    result = ask(agent, "go")

    first, second = tool_results(agent.messages)
    assert first["status"] == "error"
    assert "child" in first["content"][0]["text"]
    assert told in first["content"][0]["text"]
    assert (second["status"], second["content"]) == ("success", [{"text": "fine"}])
    assert (result.stop_reason, child_model.calls) == ("end_turn", 2)
    assert_valid_history(agent.messages)
    assert_valid_history(child.messages)


def test_an_answer_cut_at_the_token_limit_is_an_error_result(ask, make_agent, tool_results):
    """Conformance 67."""
    child, _ = make_agent([turn("half", stop="max_tokens")], name="child")
    agent, _ = make_agent([use("child", {"input": "B"}), "done"], tools=[child])

    ask(agent, "go")

    result = tool_results(agent.messages)[0]
    assert result["status"] == "error"
    assert "MaxTokensReachedException" in result["content"][0]["text"]


def test_an_agent_with_a_session_cannot_start_anew_with_each_call():
    """Conformance 68."""

    class WithSession(Agent):
        session_manager = object()

    child = WithSession(model=ScriptedModel([]), name="child", callback_handler=None)

    with pytest.raises(ValueError, match="session manager"):
        child.as_tool()

    with pytest.raises(ValueError, match="session manager"):
        Agent(model=ScriptedModel([]), tools=[child], callback_handler=None)

    assert child.as_tool(preserve_context=True).tool_name == "child"


def test_structured_output_of_the_sub_agent_is_a_json_block(ask, make_agent, tool_results):
    class City(pydantic.BaseModel):
        name: str
        people: int

    class Fills:
        """Stands in for whatever fills a model."""

        name = "fills"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            result = await call_next(invocation)
            result.structured_output = City(name="Rome", people=3)
            return result

    child, _ = make_agent(["text"], name="child", plugins=[Fills()])
    agent, _ = make_agent([use("child", {"input": "B"}), "done"], tools=[child])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"json": {"name": "Rome", "people": 3}}]


def test_a_direct_call_asks_the_sub_agent(make_agent, tool_results):
    child, child_model = make_agent(["found it"], name="researcher")
    agent, model = make_agent([], tools=[child])

    result = agent.tool.researcher(input="find")

    assert (result["status"], result["content"]) == ("success", [{"text": "found it"}])
    assert (child_model.calls, model.calls, len(agent.messages)) == (1, 0, 4)
    assert tool_results(agent.messages) == [result]


def test_an_agent_that_calls_itself_for_ever_is_bounded(ask, make_agent):
    def always_asks(request):
        answered = any("toolResult" in block for message in request.messages for block in message["content"])
        return "back" if answered else use("me", {"input": "deeper"})

    agent, model = make_agent(ScriptedModel(always_asks), name="me")
    agent.tool_registry.add(agent.as_tool())

    assert str(ask(agent, "go")) == "back\n"
    assert model.calls == 18  # itself and eight below, two calls each


@pytest.mark.parametrize("preserve", [False, True])
def test_a_shared_budget_reaches_through(ask, make_agent, tool_results, preserve):
    again = tool(name="again")(lambda: "again")
    child, child_model = make_agent(always(use("again", {})), name="child", tools=[again])
    agent, _ = make_agent(
        [use("child", {"input": "B"}), "never"], name="parent", tools=[child.as_tool(preserve_context=preserve)]
    )
    budget = Budget(turns=4)

    result = ask(agent, "go", limits=budget)

    assert (result.stop_reason, child_model.calls) == ("limit_turns", 3)
    assert {name: spent.turns for name, spent in budget.spent.items()} == {"parent": 1, "child": 3}
    told = tool_results(agent.messages)[0]
    assert (told["status"], "limit_turns" in told["content"][0]["text"]) == ("error", True)
    assert_valid_history(agent.messages)
    assert_valid_history(child.messages)


def always(block):
    """A model that asks for the same tool for ever."""
    return ScriptedModel(lambda request: block)


def test_the_structured_output_of_a_real_sub_agent_is_a_json_block(ask, make_agent, tool_results):
    class City(pydantic.BaseModel):
        name: str

    child, _ = make_agent([use("City", {"name": "Rome"})], name="child", structured_output_model=City)
    agent, _ = make_agent([use("child", {"input": "B"}), "done"], tools=[child])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"json": {"name": "Rome"}}]
