"""Interventions (lines 108 to 118)."""

from __future__ import annotations

import logging

import pytest

from ropewalk import (
    Agent,
    Confirm,
    Deny,
    Guide,
    HumanInTheLoop,
    InterventionHandler,
    Proceed,
    Transform,
    current_run,
    hookimpl,
    tool,
)
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

RAN = []


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    RAN.append((a, b))
    return a + b


ADDING = [use("add", {"a": 3, "b": 4}, id="A"), "done"]


@pytest.fixture(autouse=True)
def nothing_has_run():
    RAN.clear()


def at(moment, name, act, **attributes):
    """A handler that does something at one moment."""
    return type(
        "Handler", (InterventionHandler,), {"name": name, moment: lambda self, event: act(event), **attributes}
    )()


def says(action, name="guard", moment="before_tool_call", **attributes):
    return at(moment, name, lambda event: action, **attributes)


@pytest.fixture
def guarded(make_agent):
    """`guarded(handler, ...)` gives an agent that is asked to add, and its model."""

    def make(*handlers, turns=ADDING, **parameters):
        return make_agent(turns, tools=[add], interventions=list(handlers), **parameters)

    return make


def answers(result, *responses):
    return [
        {"interruptResponse": {"interruptId": each.id, "response": response}}
        for each, response in zip(result.interrupts, responses, strict=True)
    ]


# -- 108 to 110: Deny and Guide ----------------------------------------------------------------------------------------


def test_a_deny_makes_an_error_result_and_later_handlers_are_not_run(ask, guarded, tool_results, result_text):
    later = []
    agent, _ = guarded(says(Deny("r")), at("before_tool_call", "later", lambda event: later.append(event) or Proceed()))

    assert str(ask(agent, "Add.")) == "done\n"

    (result,) = tool_results(agent.messages)
    assert (result["status"], result_text(result)) == ("error", "DENIED: r")
    assert (RAN, later) == ([], [])
    assert_valid_history(agent.messages)


def test_two_guides_make_one_result_with_both_labelled(ask, guarded, tool_results, result_text):
    agent, _ = guarded(says(Guide("f1"), "a"), says(Guide("f2"), "b"))

    ask(agent, "Add.")

    (result,) = tool_results(agent.messages)
    assert (result["status"], result_text(result)) == ("error", "GUIDANCE: [a] f1\n[b] f2")
    assert RAN == []


def test_a_deny_after_a_guide_wins(ask, guarded, tool_results, result_text):
    agent, _ = guarded(says(Guide("f"), "a"), says(Deny("r"), "b"))

    ask(agent, "Add.")

    assert [result_text(result) for result in tool_results(agent.messages)] == ["DENIED: r"]


# -- 111 and 112: Confirm ----------------------------------------------------------------------------------------------


def test_a_confirmation_with_a_preset_yes_runs_the_tool(ask, guarded):
    agent, _ = guarded(says(Confirm("sure?", response="yes")))

    ask(agent, "Add.")

    assert RAN == [(3, 4)]


def test_a_confirmation_with_a_preset_no_fails(ask, guarded, tool_results, result_text):
    agent, _ = guarded(says(Confirm("sure?", response="no")))

    ask(agent, "Add.")

    (result,) = tool_results(agent.messages)
    assert (result["status"], result_text(result)) == ("error", "CONFIRMATION_FAILED: sure?")
    assert RAN == []


def test_a_confirmation_without_a_preset_interrupts_and_y_resumes(ask, guarded):
    agent, model = guarded(says(Confirm("sure?"), "approver"))
    result = ask(agent, "Add.")
    assert result.stop_reason == "interrupt"
    assert [(each.name, each.reason) for each in result.interrupts] == [("approver", "sure?")]
    assert (RAN, model.calls, len(agent.messages)) == ([], 1, 2)

    result = ask(agent, answers(result, "y"))

    assert (result.stop_reason, str(result), RAN, model.calls) == ("end_turn", "done\n", [(3, 4)], 2)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("response", ["n", "", False, None, 0])
def test_every_answer_that_is_no_yes_is_a_no(ask, guarded, tool_results, result_text, response):
    agent, _ = guarded(says(Confirm("sure?")))

    assert ask(agent, answers(ask(agent, "Add."), response)).stop_reason == "end_turn"
    assert [result_text(result) for result in tool_results(agent.messages)] == ["CONFIRMATION_FAILED: sure?"]
    assert RAN == []


@pytest.mark.parametrize("response", ["y", "t"])
def test_a_human_in_the_loop_approves_or_trusts(ask, guarded, response):
    turns = [use("add", {"a": 1, "b": 1}, id="A"), use("add", {"a": 2, "b": 2}, id="B"), "done"]
    agent, _ = guarded(HumanInTheLoop(enable_trust=True), turns=turns)

    result = ask(agent, answers(ask(agent, "Add."), response))

    assert result.stop_reason == ("interrupt" if response == "y" else "end_turn")
    assert ([(1, 1)] if response == "y" else [(1, 1), (2, 2)]) == RAN


# -- 114: Transform ----------------------------------------------------------------------------------------------------


def test_a_transform_after_a_tool_redacts_its_result(ask, guarded, tool_results, result_text):
    def redact(event):
        event.result["content"] = [{"text": "(redacted)"}]

    agent, model = guarded(says(Transform(redact), moment="after_tool_call"))

    ask(agent, "Add.")

    assert RAN == [(3, 4)]
    assert [result_text(result) for result in tool_results(agent.messages)] == ["(redacted)"]
    assert [result_text(result) for result in tool_results(model.requests[1].messages)] == ["(redacted)"]


def test_a_transform_of_an_input_does_not_rewrite_the_history(ask, guarded):
    def change(event):
        event.tool_use["input"]["a"] = 100

    agent, _ = guarded(says(Transform(change)))

    ask(agent, "Add.")

    assert RAN == [(100, 4)]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"a": 3, "b": 4}


# -- 115: before the invocation, and the model -------------------------------------------------------------------------


def test_a_denied_invocation_calls_no_model_and_leaves_a_valid_history(ask, guarded):
    agent, model = guarded(
        at("before_invocation", "guard", lambda event: Deny("r") if "bad" in str(event.messages) else Proceed()),
        turns=["hello", "again"],
    )
    ask(agent, "good")

    result = ask(agent, "bad")

    assert (result.stop_reason, str(result), model.calls) == ("end_turn", "DENIED: r\n", 1)
    assert [message["role"] for message in agent.messages] == ["user", "assistant"]
    assert_valid_history(agent.messages)
    assert str(ask(agent, "good")) == "again\n"


def test_guidance_after_the_model_asks_it_again(ask, guarded):
    def judge(event):
        return Guide("shorter") if "long" in str(event.stop_response.message) else Proceed()

    agent, model = guarded(at("after_model_call", "judge", judge), turns=["long", "short"])

    assert str(ask(agent, "Go.")) == "short\n"
    assert model.calls == 2
    assert agent.messages[0]["content"][-1] == {"text": "[judge] shorter"}
    assert_valid_history(agent.messages)


def test_guidance_is_not_lost_when_a_hook_asks_before_the_model_is_guided(ask, guarded):
    """The answer that is guided came before the pause: the model is not asked for it a second time."""

    class Asks:
        name = "asks"

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            current_run().interrupt("go on?")
            return outcome

    def judge(event):
        return Guide("shorter") if "long" in str(event.stop_response.message) else Proceed()

    agent, model = guarded(at("after_model_call", "judge", judge), turns=["long", "short"], plugins=[Asks()])
    result = ask(agent, "Go.")

    assert str(agent(answers(result, True))) == "short\n"
    assert model.calls == 2
    assert agent.messages[0]["content"][-1] == {"text": "[judge] shorter"}


def test_guidance_that_the_model_never_follows_ends_in_an_error(ask, guarded):
    agent, model = guarded(says(Guide("shorter"), moment="after_model_call"), turns=["long"] * 20)

    with pytest.raises(Exception, match="guided the model 3 times in one turn"):
        ask(agent, "Go.")

    assert model.calls == 4
    assert_valid_history(agent.messages)


# -- 117: handlers that raise ------------------------------------------------------------------------------------------


def broken(**attributes):
    def act(event):
        raise ValueError("broken")

    return at("before_tool_call", "broken", act, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"on_error": "throw"}])
def test_a_handler_that_raises_stops_the_run(ask, guarded, attributes):
    agent, _ = guarded(broken(**attributes))

    with pytest.raises(ValueError, match="broken"):
        ask(agent, "Add.")

    assert RAN == []
    assert_valid_history(agent.messages)


def test_a_handler_that_raises_may_deny(ask, guarded, tool_results, result_text):
    agent, _ = guarded(broken(on_error="deny"))

    assert str(ask(agent, "Add.")) == "done\n"
    (result,) = tool_results(agent.messages)
    assert result["status"] == "error"
    assert result_text(result).startswith("DENIED: ")
    assert RAN == []


def test_a_handler_that_raises_may_proceed(ask, guarded, caplog):
    agent, _ = guarded(broken(on_error="proceed"))

    with caplog.at_level(logging.WARNING, "ropewalk"):
        assert str(ask(agent, "Add.")) == "done\n"

    assert RAN == [(3, 4)]
    assert "'broken' failed" in caplog.text


# -- 118: names and answers --------------------------------------------------------------------------------------------


def test_two_handlers_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two handlers are named 'same'"):
        Agent(callback_handler=None, interventions=[says(Proceed(), "same"), says(Proceed(), "same")])


def test_a_handler_that_returns_none_is_a_type_error(ask, guarded):
    agent, _ = guarded(says(None))

    with pytest.raises(TypeError, match="returned None"):
        ask(agent, "Add.")

    assert RAN == []
    assert_valid_history(agent.messages)


# -- sub-agents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preserve_context", [False, True])
def test_an_agent_that_is_a_tool_keeps_its_handlers(ask, make_agent, preserve_context):
    child, _ = make_agent([*ADDING], tools=[add], interventions=[says(Deny("r"))], name="child")
    parent, _ = make_agent(
        [use("child", {"input": "Add."}, id="C"), "done"], tools=[child.as_tool(preserve_context=preserve_context)]
    )

    assert str(ask(parent, "Go.")) == "done\n"
    assert RAN == []


@pytest.mark.parametrize("preserve_context", [False, True])
@pytest.mark.parametrize(("response", "ran"), [("y", [(3, 4)]), ("n", [])])
def test_a_confirmation_in_a_sub_agent_reaches_the_caller(ask, make_agent, preserve_context, response, ran):
    child, _ = make_agent([*ADDING], tools=[add], interventions=[HumanInTheLoop()], name="child")
    parent, _ = make_agent(
        [use("child", {"input": "Add."}, id="C"), "done"], tools=[child.as_tool(preserve_context=preserve_context)]
    )
    result = ask(parent, "Go.")
    assert (result.stop_reason, [each.name for each in result.interrupts]) == ("interrupt", ["human-in-the-loop"])
    assert RAN == []

    result = ask(parent, answers(result, response))

    assert (result.stop_reason, str(result), RAN) == ("end_turn", "done\n", ran)


def test_handlers_see_the_same_in_a_streamed_answer(ask, guarded):
    seen = []
    agent, _ = guarded(
        at("after_model_call", "looks", lambda event: seen.append(event.stop_response.message) or Proceed()),
        turns=ScriptedModel([turn("Hello ", "there.", deltas=3)]),
    )

    ask(agent, "Go.")

    assert [block["text"] for message in seen for block in message["content"]] == ["Hello ", "there."]
