"""Loop and messages: what one call does with model turns and tools (conformance 1 to 13)."""

from __future__ import annotations

import contextlib
import sys

import pytest

from ropewalk import tool
from ropewalk.errors import ModelError
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def mul(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


# -- turns and tools ---------------------------------------------------------------------------------------------


def test_a_text_turn_ends_the_run_with_two_messages(ask, make_agent, shape):
    """Conformance 1."""
    agent, model = make_agent(["hi"])

    result = ask(agent, "hello")

    assert result.stop_reason == "end_turn"
    assert shape(agent.messages) == [("user", [{"text": "hello"}]), ("assistant", [{"text": "hi"}])]
    assert str(result) == "hi\n"
    assert result.message == agent.messages[-1]
    assert model.calls == 1


def test_a_tool_turn_makes_four_messages(ask, make_agent, shape, tool_results):
    """Conformance 2."""
    agent, model = make_agent([use("add", {"a": 1, "b": 2}, id="T1"), "three"], tools=[add])

    result = ask(agent, "1 + 2?")

    assert [role for role, _ in shape(agent.messages)] == ["user", "assistant", "user", "assistant"]
    assert agent.messages[1]["content"] == [{"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1, "b": 2}}}]
    assert tool_results(agent.messages) == [{"toolUseId": "T1", "status": "success", "content": [{"text": "3"}]}]
    assert str(result) == "three\n"
    assert shape(model.requests[1].messages) == shape(agent.messages[:3])


def test_the_model_is_told_about_every_tool_in_every_request(ask, make_agent):
    """Conformance 2."""
    agent, model = make_agent([use("add", {"a": 1, "b": 2}), "three"], tools=[add, mul], system_prompt="Count.")

    ask(agent, "1 + 2?")

    assert [[spec["name"] for spec in request.tool_specs] for request in model.requests] == [["add", "mul"]] * 2
    assert [list(request.system) for request in model.requests] == [[{"text": "Count."}]] * 2


def test_two_tools_of_one_turn_answer_in_one_message_in_request_order(ask, make_agent, tool_results):
    """Conformance 3."""
    turns = [[use("mul", {"a": 3, "b": 4}, id="M"), use("add", {"a": 1, "b": 2}, id="A")], "done"]
    agent, _ = make_agent(turns, tools=[add, mul])

    ask(agent, "both")

    assert len(agent.messages) == 4
    assert [(r["toolUseId"], r["content"]) for r in tool_results([agent.messages[2]])] == [
        ("M", [{"text": "12"}]),
        ("A", [{"text": "3"}]),
    ]


def test_text_before_a_tool_use_stays_in_the_same_message(ask, make_agent):
    """Conformance 2."""
    agent, _ = make_agent([[text("let me see"), use("add", {"a": 1, "b": 2})], "done"], tools=[add])

    ask(agent, "1 + 2?")

    assert [next(iter(block)) for block in agent.messages[1]["content"]] == ["text", "toolUse"]


def test_an_unknown_tool_is_named_in_an_error_result_and_the_loop_goes_on(ask, make_agent, tool_results, result_text):
    """Conformance 4."""
    agent, _ = make_agent([use("lookup", {}, id="T1"), "sorry"], tools=[add])

    result = ask(agent, "go")

    (answer,) = tool_results(agent.messages)
    assert (answer["toolUseId"], answer["status"]) == ("T1", "error")
    assert "lookup" in result_text(answer)
    assert str(result) == "sorry\n"


def test_an_unknown_tool_does_not_disturb_its_sibling(ask, make_agent, tool_results):
    """Conformance 4."""
    agent, _ = make_agent([[use("lookup", {}), use("add", {"a": 1, "b": 2})], "ok"], tools=[add])

    ask(agent, "go")

    assert [answer["status"] for answer in tool_results(agent.messages)] == ["error", "success"]


@pytest.mark.parametrize("name", ["bad name!", "a.b", "x" * 65, "名前", "$"])
def test_an_invalid_tool_name_is_an_error_result_and_runs_nothing(ask, make_agent, recorder, tool_results, name):
    """Conformance 5."""
    agent, _ = make_agent([use(name, {}, id="T1"), "ok"], tools=[recorder])

    result = ask(agent, "go")

    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("T1", "error")]
    assert recorder.runs == []
    assert result.stop_reason == "end_turn"


@pytest.mark.parametrize("value", ["many", [1], {"x": 1}, None, 1.5])
def test_a_bad_argument_type_is_an_error_result_that_names_the_field(
    ask, make_agent, recorder, tool_results, result_text, value
):
    """Conformance 6."""
    agent, _ = make_agent([use("note", {"value": value}), "ok"], tools=[recorder])

    ask(agent, "go")

    (answer,) = tool_results(agent.messages)
    assert answer["status"] == "error"
    assert "value" in result_text(answer)
    assert recorder.runs == []


def test_a_missing_argument_is_an_error_result_that_names_the_field(ask, make_agent, tool_results, result_text):
    """Conformance 6."""
    agent, _ = make_agent([use("add", {"a": 1}), "ok"], tools=[add])

    ask(agent, "go")

    (answer,) = tool_results(agent.messages)
    assert answer["status"] == "error"
    assert "b" in result_text(answer).split() or "`b`" in result_text(answer) or "b:" in result_text(answer)


@pytest.mark.parametrize("raw", ["", "   ", "\n\t"])
def test_blank_arguments_mean_an_empty_object_and_the_tool_runs(ask, make_agent, recorder, raw):
    """Conformance 8."""
    agent, _ = make_agent([use("note", raw, id="T1"), "ok"], tools=[recorder])

    ask(agent, "go")

    assert recorder.runs == [0]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {}


@pytest.mark.parametrize("raw", ["[]", '[{"value": 1}]', "null", "7", "true", '"text"'])
def test_arguments_that_are_no_object_are_an_error_result(ask, make_agent, recorder, tool_results, raw):
    """Conformance 9."""
    agent, model = make_agent([use("note", raw, id="T1"), "ok"], tools=[recorder])

    ask(agent, "go")

    assert [answer["status"] for answer in tool_results(agent.messages)] == ["error"]
    assert recorder.runs == []
    assert model.requests[1].messages[1]["content"][0]["toolUse"]["input"] == {}


def test_a_tool_use_runs_although_the_model_says_end_turn(ask, make_agent, recorder):
    """Conformance 11."""
    agent, _ = make_agent([turn(use("note", {"value": 5}), stop="end_turn"), "ok"], tools=[recorder])

    result = ask(agent, "go")

    assert recorder.runs == [5]
    assert str(result) == "ok\n"


@pytest.mark.parametrize(
    "head", [{"toolUseId": "T1"}, {"toolUseId": "T1", "name": ""}, {"toolUseId": "T1", "name": None}]
)
def test_a_tool_use_without_a_name_is_an_error_result_and_ends(ask, make_agent, recorder, tool_results, head):
    """Conformance 12 (B)."""
    nameless = turn(
        raw=[
            {"messageStart": {"role": "assistant"}},
            {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": head}}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "tool_use"}},
        ]
    )
    agent, model = make_agent([nameless, "ok"], tools=[recorder])

    result = ask(agent, "go")

    assert [answer["status"] for answer in tool_results(agent.messages)] == ["error"]
    assert (recorder.runs, result.stop_reason, model.calls) == ([], "end_turn", 2)
    sent = model.requests[1].messages[1]["content"][0]["toolUse"]
    assert sent["name"], "a provider refuses an empty name in the history"
    assert_valid_history(agent.messages)


def test_a_model_that_never_names_its_tool_is_stopped(ask, make_agent):
    """Conformance 12 (B)."""
    model = ScriptedModel([use("", {}) for _ in range(100)])
    agent, _ = make_agent(model)

    with contextlib.suppress(ModelError):  # an error or a stop: what counts is that it ends
        ask(agent, "go")

    assert model.calls < 50
    assert_valid_history(agent.messages)


# -- length ------------------------------------------------------------------------------------------------------


def depth(frame):
    """How many frames are on the stack."""
    count = 0
    while frame is not None:
        frame, count = frame.f_back, count + 1

    return count


def test_a_thousand_tool_turns_complete_at_constant_depth(ask, make_agent):
    """Conformance 13 (B)."""
    depths = []

    @tool
    async def dig() -> str:
        """Digs."""
        depths.append(depth(sys._getframe()))
        return "deeper"

    model = ScriptedModel([use("dig", {}) for _ in range(1000)] + ["bottom"], record=False)
    agent, _ = make_agent(model, tools=[dig], plugins=["-window"])

    result = ask(agent, "go")

    assert (result.stop_reason, model.calls, len(agent.messages)) == ("end_turn", 1001, 2002)
    assert depths[-1] == depths[1]


@pytest.mark.parametrize("plugins", [[], ["-window"]], ids=["trimmed", "whole"])
async def test_the_work_of_a_turn_does_not_grow_with_the_number_of_turns(make_agent, plugins):
    """Conformance 13 (B)."""
    marks = []
    steps = 0

    def count(frame, kind, argument):
        nonlocal steps
        steps += 1

    @tool
    async def dig() -> str:
        """Digs."""
        marks.append(steps)
        return "deeper"

    model = ScriptedModel([use("dig", {}) for _ in range(1000)] + ["bottom"], record=False)
    agent, _ = make_agent(model, tools=[dig], plugins=plugins)
    sys.setprofile(count)
    try:
        await agent.invoke_async("go")
    finally:
        sys.setprofile(None)

    early, late = marks[150] - marks[50], marks[999] - marks[899]
    assert 0 < late <= early * 1.1
