"""Structured output (conformance 176 to 184)."""

from __future__ import annotations

import asyncio
from typing import Optional

import pytest
from pydantic import BaseModel, Field

from ropewalk import StructuredOutputException, tool
from ropewalk_testing import assert_valid_history, use

DEFAULT_PROMPT = "You must format the previous response as structured output."


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int = Field(ge=0)


class Node(BaseModel):
    word: str
    children: list[Node] = []
    parent: Optional[Node] = None  # noqa: UP045 - as users write it


class Never(BaseModel):
    n: int

    def __bool__(self):
        return False


ANN = {"name": "Ann", "age": 30}


def offered(request):
    return [spec["name"] for spec in request.tool_specs]


def test_structured_output_on_the_first_call_gives_the_object_and_leaves_no_tool(ask, make_agent):
    """Conformance 176."""
    agent, model = make_agent([use("Person", ANN)])

    result = ask(agent, "Who?", structured_output_model=Person)

    assert result.structured_output == Person(name="Ann", age=30)
    assert isinstance(result.structured_output, Person)
    assert result.stop_reason == "tool_use"
    assert str(result) == '{"name":"Ann","age":30}'
    assert agent.tool_names == []
    assert offered(model.requests[0]) == ["Person"]
    assert (
        model.requests[0]
        .tool_specs[0]["description"]
        .startswith("IMPORTANT: This StructuredOutputTool should only be invoked as the last")
    )
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user"]
    assert_valid_history(agent.messages)


def test_followers_are_shown_the_object_before_the_result(make_agent, events_of):
    """Conformance 35 and 176."""
    agent, _ = make_agent([use("Person", ANN)], structured_output_model=Person)

    events = events_of(agent, "Who?")

    assert events[-2] == {"structured_output": Person(name="Ann", age=30)}
    assert events[-1]["result"].structured_output == events[-2]["structured_output"]


def test_structured_output_of_the_constructor_is_used_for_every_call(ask, make_agent):
    """Conformance 176."""
    agent, _ = make_agent(
        [use("Person", ANN), use("Person", {"name": "Bob", "age": 4})], structured_output_model=Person
    )

    assert ask(agent, "Who?").structured_output.name == "Ann"
    assert ask(agent, "And?").structured_output.name == "Bob"


def test_the_call_without_a_model_is_not_asked_for_output_any_more(ask, make_agent):
    """Conformance 176."""
    agent, model = make_agent([use("Person", ANN), "plain"])
    ask(agent, "Who?", structured_output_model=Person)

    result = ask(agent, "And?")

    assert (str(result), result.structured_output, offered(model.requests[1])) == ("plain\n", None, [])
    assert_valid_history(agent.messages)


def test_text_first_is_followed_by_a_forced_turn_with_tool_choice_and_prompt(ask, make_agent):
    """Conformance 177."""

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent, model = make_agent(["Ann, 30.", use("Person", ANN)], tools=[look])

    result = ask(agent, "Who?", structured_output_model=Person)

    first, forced = model.requests
    assert offered(first) == ["look", "Person"]
    assert first.tool_choice is None
    assert offered(forced) == ["Person"]
    assert forced.tool_choice == {"tool": {"name": "Person"}}
    assert forced.messages[-1] == {"role": "user", "content": [{"text": DEFAULT_PROMPT}]}
    assert result.structured_output == Person(**ANN)


def test_text_in_the_forced_turn_is_an_error_and_json_in_it_is_the_output(ask, make_agent):
    """Conformance 178."""
    agent, model = make_agent(["Ann, 30.", "I said Ann, 30.", "Bob, 4.", '{"name": "Bob", "age": 4}'])
    with pytest.raises(StructuredOutputException):
        ask(agent, "Who?", structured_output_model=Person)

    assert model.calls == 2
    assert_valid_history(agent.messages)

    result = ask(agent, "And?", structured_output_model=Person)

    assert (result.structured_output.name, result.stop_reason) == ("Bob", "end_turn")


def test_a_validation_error_is_fed_back_with_field_names(ask, make_agent, tool_results, result_text):
    """Conformance 179."""
    agent, model = make_agent([use("Person", {"age": -1}), use("Person", ANN)])

    result = ask(agent, "Who?", structured_output_model=Person)

    (first, second) = tool_results(agent.messages)
    lines = result_text(first).splitlines()
    assert first["status"] == "error"
    assert lines[0].startswith("Validation failed for Person. Please fix ")
    assert len(lines) == 3
    assert "name" in lines[1]
    assert "age" in lines[2]
    assert second["status"] == "success"
    assert result.structured_output == Person(**ANN)
    assert model.calls == 2


def test_a_model_that_is_always_wrong_ends_in_an_error(ask, make_agent):
    """Conformance 180."""
    agent, model = make_agent(lambda _: use("Person", {"age": "old"}))
    with pytest.raises(StructuredOutputException, match="Person") as caught:
        ask(agent, "Who?", structured_output_model=Person)

    assert model.calls == 3
    assert "name" in caught.value.problem
    assert_valid_history(agent.messages)


def test_other_tools_of_the_turn_run_and_the_first_valid_output_wins(ask, make_agent, tool_results):
    """Conformance 176."""
    seen = []

    @tool
    def look(what: str) -> str:
        """Looks."""
        seen.append(what)
        return "seen"

    asked = [
        use("Person", {"name": "?"}),
        use("Person", ANN),
        use("look", {"what": "x"}),
        use("Person", {**ANN, "age": 9}),
    ]
    agent, _ = make_agent([asked], tools=[look])

    result = ask(agent, "Who?", structured_output_model=Person)

    assert result.structured_output.age == 30
    assert seen == ["x"]
    assert [each["status"] for each in tool_results(agent.messages)] == ["error", "success", "success", "success"]


@pytest.mark.parametrize(
    ("of_agent", "of_call", "asked"),
    [("Agent's.", None, "Agent's."), (None, "Call's.", "Call's."), ("Agent's.", "Call's.", "Call's.")],
)
def test_the_custom_prompt_comes_from_agent_and_from_call(ask, make_agent, of_agent, of_call, asked):
    """Conformance 181."""
    agent, model = make_agent(["Ann.", use("Person", ANN)], structured_output_prompt=of_agent)

    ask(agent, "Who?", structured_output_model=Person, structured_output_prompt=of_call)

    assert model.requests[1].messages[-1]["content"] == [{"text": asked}]


def test_limits_before_the_forced_turn_are_the_result_without_an_object(ask, make_agent):
    """Conformance 182."""
    agent, model = make_agent(["Ann, 30."])

    result = ask(agent, "Who?", structured_output_model=Person, limits={"turns": 1})

    assert (result.stop_reason, result.structured_output, model.calls) == ("limit_turns", None, 1)
    assert result.message == agent.messages[1]
    assert_valid_history(agent.messages)


def test_an_output_within_the_limits_is_the_result(ask, make_agent):
    """Conformance 182."""
    agent, _ = make_agent([use("Person", ANN)])

    result = ask(agent, "Who?", structured_output_model=Person, limits={"turns": 1})

    assert (result.stop_reason, result.structured_output) == ("tool_use", Person(**ANN))


def test_a_falsy_output_is_an_output(ask, make_agent):
    """Conformance 183 (B)."""
    agent, model = make_agent([use("Never", {"n": 0})])

    result = ask(agent, "Who?", structured_output_model=Never)

    assert (result.structured_output.n, str(result), model.calls) == (0, '{"n":0}', 1)


def test_a_recursive_output_model_is_supported(ask, make_agent):
    """Conformance 184 (B)."""
    tree = {"word": "a", "children": [{"word": "b", "children": [{"word": "c"}]}]}
    agent, model = make_agent([use("Node", tree)])

    result = ask(agent, "Draw.", structured_output_model=Node)

    assert result.structured_output.children[0].children[0].word == "c"
    schema = model.requests[0].tool_specs[0]["inputSchema"]["json"]
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"word", "children", "parent"}


def test_a_tool_of_the_same_name_is_refused_before_any_work(ask, make_agent):
    """Conformance 176."""

    @tool(name="Person")
    def other() -> str:
        """Is in the way."""
        return "no"

    agent, model = make_agent(["hi"], tools=[other])
    with pytest.raises(ValueError, match="Tool 'Person' already exists"):
        ask(agent, "Who?", structured_output_model=Person)

    assert (model.calls, agent.messages) == (0, [])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_method_reads_the_history_and_keeps_neither_prompt_nor_answer(make_agent, asynchronous):
    """Conformance 176; semantics of `Agent.structured_output`."""

    def fill(agent, *given):
        return asyncio.run(agent.structured_output_async(*given)) if asynchronous else agent.structured_output(*given)

    agent, model = make_agent([use("Person", ANN), "hello", use("Person", ANN)])
    with pytest.raises(ValueError, match="prompt"):
        fill(agent, Person)

    assert fill(agent, Person, "Ann is 30.") == Person(**ANN)
    assert agent.messages == []

    agent("Ann is 30.")
    before = list(agent.messages)

    assert fill(agent, Person) == Person(**ANN)
    assert agent.messages == before
    assert model.requests[2].messages[0] == before[0]
    assert agent.tool_names == []
