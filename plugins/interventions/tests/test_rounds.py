"""What handlers' actions do at each moment."""

from __future__ import annotations

import logging

import pytest

from ropewalk_interventions import Confirm, Deny, Guide, InterventionError, Proceed, Transform
from ropewalk_testing import assert_valid_history, use


def said(action):
    return lambda event: action


# -- Deny --------------------------------------------------------------------------------------------------------------


def test_a_denied_tool_does_not_run_and_later_handlers_are_not_asked(make_agent, handler, noting, danger, outcome):
    seen = []
    agent = make_agent(handler("first", before_tool_call=said(Deny("no"))), noting(seen, "before_tool_call"))

    agent("go")

    assert outcome(agent) == {"A": ("error", "DENIED: no")}
    assert (danger.ran, seen) == ([], [])
    assert_valid_history(agent.messages)


def test_a_denied_invocation_stores_nothing(make_agent, handler):
    agent = make_agent(handler(before_invocation=said(Deny("closed"))))

    result = agent("go")

    assert (result.stop_reason, str(result)) == ("end_turn", "DENIED: closed\n")
    assert (list(agent.messages), agent.model.calls) == ([], 0)


def test_a_denied_model_call_answers_in_the_models_place(make_agent, handler):
    agent = make_agent(handler(before_model_call=said(Deny("closed"))))

    result = agent("go")

    assert (result.stop_reason, str(result), agent.model.calls) == ("end_turn", "DENIED: closed\n", 0)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("moment", ["after_model_call", "after_tool_call"])
@pytest.mark.parametrize("action", [Deny("no"), Confirm("sure?"), Confirm("sure?", response="n")])
def test_an_action_without_effect_is_a_warning(make_agent, handler, danger, caplog, moment, action):
    agent = make_agent(handler("late", **{moment: said(action)}))

    with caplog.at_level(logging.WARNING, "ropewalk.interventions"):
        assert str(agent("go")) == "done\n"

    assert danger.ran == [{"path": "x"}]
    assert f"the intervention handler 'late' answered {type(action).__name__} at {moment}" in caplog.text


@pytest.mark.parametrize("moment", ["before_invocation", "before_model_call"])
def test_a_confirmation_where_nobody_can_be_asked_is_a_warning(make_agent, handler, caplog, moment):
    agent = make_agent(handler(**{moment: said(Confirm("sure?"))}))

    with caplog.at_level(logging.WARNING, "ropewalk.interventions"):
        assert str(agent("go")) == "done\n"

    assert f"Confirm at {moment}" in caplog.text


# -- Guide -------------------------------------------------------------------------------------------------------------


def test_guidance_of_all_handlers_answers_a_tool_call(make_agent, handler, danger, outcome):
    agent = make_agent(
        handler("a", before_tool_call=said(Guide("be brief"))), handler("b", before_tool_call=said(Guide("be kind")))
    )

    agent("go")

    assert outcome(agent) == {"A": ("error", "GUIDANCE: [a] be brief\n[b] be kind")}
    assert danger.ran == []


def test_a_later_deny_outweighs_guidance(make_agent, handler, outcome):
    agent = make_agent(
        handler("a", before_tool_call=said(Guide("be brief"))), handler("b", before_tool_call=said(Deny("no")))
    )

    agent("go")

    assert outcome(agent) == {"A": ("error", "DENIED: no")}


def test_nobody_is_asked_about_a_call_that_guidance_has_answered(make_agent, handler, outcome):
    agent = make_agent(
        handler("a", before_tool_call=said(Guide("be brief"))), handler("b", before_tool_call=said(Confirm("sure?")))
    )

    assert agent("go").stop_reason == "end_turn"
    assert outcome(agent) == {"A": ("error", "GUIDANCE: [a] be brief")}


def test_guidance_for_an_invocation_is_its_answer(make_agent, handler):
    agent = make_agent(handler("a", before_invocation=said(Guide("ask shorter"))))

    assert str(agent("go")) == "GUIDANCE: [a] ask shorter\n"
    assert (list(agent.messages), agent.model.calls) == ([], 0)


def test_guidance_after_a_tool_is_a_warning(make_agent, handler, caplog, outcome):
    agent = make_agent(handler(after_tool_call=said(Guide("hm"))))

    with caplog.at_level(logging.WARNING, "ropewalk.interventions"):
        agent("go")

    assert "Guide at after_tool_call" in caplog.text
    assert outcome(agent) == {"A": ("success", "ran")}


# -- Transform ---------------------------------------------------------------------------------------------------------


async def test_a_changed_input_runs_and_the_history_keeps_what_the_model_asked(make_agent, handler, danger):
    async def clean(event):
        event.tool_use["input"]["path"] = "clean"

    agent = make_agent(handler(before_tool_call=said(Transform(clean))))

    await agent.invoke_async("go")

    assert danger.ran == [{"path": "clean"}]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"path": "x"}


def test_handlers_see_what_earlier_ones_made_of_a_call(make_agent, handler, danger):
    def add(key):
        return said(Transform(lambda event: event.tool_use["input"].update({key: 1})))

    agent = make_agent(handler("a", before_tool_call=add("a")), handler("b", before_tool_call=add("b")))

    agent("go")

    assert danger.ran == [{"path": "x", "a": 1, "b": 1}]


def test_a_call_may_be_given_to_another_tool(make_agent, handler, danger, safe):
    def redirect(event):
        event.tool_use["name"] = "safe"

    agent = make_agent(handler(before_tool_call=said(Transform(redirect))))

    agent("go")

    assert (danger.ran, safe.ran) == ([], [{"path": "x"}])


def test_what_a_handler_writes_without_a_transform_has_no_effect(make_agent, handler, danger, outcome):
    def before(event):
        event.tool_use["input"]["path"] = "evil"
        event.cancel_tool = True
        return Proceed()

    def after(event):
        event.result["content"] = [{"text": "evil"}]
        return Proceed()

    agent = make_agent(handler(before_tool_call=before, after_tool_call=after))

    agent("go")

    assert danger.ran == [{"path": "x"}]
    assert outcome(agent) == {"A": ("success", "ran")}


def test_a_transform_that_cancels_a_call_refuses_it(make_agent, handler, danger, outcome):
    def cancel(event):
        event.cancel_tool = "not now"

    agent = make_agent(handler(before_tool_call=said(Transform(cancel))))

    agent("go")

    assert (danger.ran, outcome(agent)) == ([], {"A": ("error", "not now")})


@pytest.mark.parametrize(("moment", "text"), [("before_invocation", "shut"), ("before_model_call", "shut")])
def test_a_transform_that_cancels_answers_with_its_text(make_agent, handler, moment, text):
    def cancel(event):
        event.cancel = text

    agent = make_agent(handler(**{moment: said(Transform(cancel))}))

    assert str(agent("go")) == f"{text}\n"
    assert agent.model.calls == 0


def test_a_redacted_result_is_what_the_model_sees(make_agent, handler, danger, outcome):
    danger.answer = "the secret"

    def redact(event):
        assert (event.tool_use["input"], event.selected_tool) == ({"path": "x"}, danger)
        event.result["content"] = [{"text": "(redacted)"}]

    agent = make_agent(handler(after_tool_call=said(Transform(redact))))

    agent("go")

    assert outcome(agent) == {"A": ("success", "(redacted)")}
    assert "secret" not in str(agent.messages)
    assert "secret" not in str(agent.model.requests[1].messages)


def test_a_changed_input_of_an_invocation_is_what_is_asked(make_agent, handler):
    def redact(event):
        event.messages[0]["content"] = [{"text": "(redacted)"}]

    agent = make_agent(handler(before_invocation=said(Transform(redact))), turns=["hello"])

    agent("the secret")

    assert agent.messages[0]["content"] == [{"text": "(redacted)"}]


def test_a_changed_request_is_sent_and_not_stored(make_agent, handler):
    def redact(event):
        event.messages[0]["content"] = [{"text": "(redacted)"}]

    agent = make_agent(handler(before_model_call=said(Transform(redact))), turns=["hello"])

    agent("the secret")

    assert agent.model.requests[0].messages[0]["content"] == [{"text": "(redacted)"}]
    assert agent.messages[0]["content"] == [{"text": "the secret"}]


def test_a_changed_answer_is_what_is_stored(make_agent, handler):
    def redact(event):
        event.stop_response.message["content"] = [{"text": "(redacted)"}]

    agent = make_agent(handler(after_model_call=said(Transform(redact))), turns=["the secret"])

    assert str(agent("go")) == "(redacted)\n"
    assert "secret" not in str(agent.messages)


def test_an_answer_whose_tool_use_is_taken_out_ends_the_turn(make_agent, handler, danger):
    def strip(event):
        event.stop_response.message["content"] = [{"text": "nothing to do"}]

    agent = make_agent(handler(after_model_call=said(Transform(strip))))

    result = agent("go")

    assert (result.stop_reason, str(result), danger.ran) == ("end_turn", "nothing to do\n", [])


def test_a_transform_that_wants_the_answer_again_gets_another_one(make_agent, handler):
    def again(event):
        event.retry = "bad" in str(event.stop_response.message)

    agent = make_agent(handler(after_model_call=said(Transform(again))), turns=["bad", "good"])

    assert str(agent("go")) == "good\n"


def test_a_transform_that_leaves_no_message_says_whose_it_was(make_agent, handler):
    def spoil(event):
        event.stop_response = None

    agent = make_agent(handler("spoiler", after_model_call=said(Transform(spoil))))

    with pytest.raises(InterventionError, match=r"the Transform of the intervention handler 'spoiler' left an event"):
        agent("go")


def test_a_transform_that_fails_leaves_nothing_behind(make_agent, handler, danger):
    def half(event):
        event.tool_use["input"]["path"] = "half"
        raise ValueError("broken")

    agent = make_agent(handler(before_tool_call=said(Transform(half)), on_error="proceed"))

    agent("go")

    assert danger.ran == [{"path": "x"}]


# -- Confirm -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("response", ["y", "YES", " yes ", True])
def test_a_preset_yes_lets_the_tool_run(make_agent, handler, danger, response):
    agent = make_agent(handler(before_tool_call=said(Confirm("sure?", response=response))))

    agent("go")

    assert danger.ran == [{"path": "x"}]


@pytest.mark.parametrize("response", ["n", "", False, 0, 1, ["y"], "yes please"])
def test_a_preset_that_is_no_yes_fails_and_later_handlers_are_not_asked(
    make_agent, handler, noting, danger, outcome, response
):
    seen = []
    asking = handler("asking", before_tool_call=said(Confirm("sure?", response=response)))
    agent = make_agent(asking, noting(seen, "before_tool_call"))

    agent("go")

    assert outcome(agent) == {"A": ("error", "CONFIRMATION_FAILED: sure?")}
    assert (danger.ran, seen) == ([], [])


async def test_an_evaluation_of_ones_own_may_be_async(make_agent, handler, danger):
    async def evaluate(response):
        return response == "aye"

    agent = make_agent(handler(before_tool_call=said(Confirm("sure?", "aye", evaluate))))

    await agent.invoke_async("go")

    assert danger.ran == [{"path": "x"}]


def test_an_evaluation_that_fails_is_the_handlers_failure(make_agent, handler, danger, outcome):
    def evaluate(response):
        raise ValueError("what is that")

    agent = make_agent(handler(before_tool_call=said(Confirm("sure?", "y", evaluate)), on_error="deny"))

    agent("go")

    assert (danger.ran, outcome(agent)) == ([], {"A": ("error", "DENIED: the handler 'h' failed (ValueError)")})


# -- where handlers stand ----------------------------------------------------------------------------------------------


def test_direct_calls_pass_the_handlers(make_agent, handler, danger):
    agent = make_agent(handler(before_tool_call=said(Deny("no"))))

    assert agent.tool.danger(path="x")["content"] == [{"text": "DENIED: no"}]
    assert danger.ran == []


def test_a_direct_call_cannot_be_confirmed_by_a_pause(make_agent, handler, danger):
    agent = make_agent(handler(before_tool_call=said(Confirm("sure?"))))

    with pytest.raises(RuntimeError, match="nobody can answer in a direct call"):
        agent.tool.danger(path="x")

    assert danger.ran == []


def test_parallel_calls_are_judged_each_for_itself(make_agent, handler, danger, safe, outcome):
    turns = [[use("danger", {"n": 1}, id="A"), use("safe", {"n": 2}, id="B")], "done"]
    seen = {}

    def before(event):
        return Deny("no") if event.tool_use["name"] == "danger" else Proceed()

    def after(event):
        seen[event.tool_use["toolUseId"]] = (event.selected_tool.tool_name, event.tool_use["input"], event.exception)
        return Proceed()

    agent = make_agent(handler(before_tool_call=before, after_tool_call=after), turns=turns)

    agent("go")

    assert outcome(agent) == {"A": ("error", "DENIED: no"), "B": ("success", "ran")}
    assert seen == {"B": ("safe", {"n": 2}, None)}


def test_the_error_of_a_tool_is_shown_after_it(make_agent, handler, danger):
    seen = []

    async def fail(call):
        raise ValueError("broken")

    danger.invoke = fail

    def after(event):
        seen.append((str(event.exception), event.result["status"], event.duration >= 0))
        return Proceed()

    agent = make_agent(handler(after_tool_call=after))

    agent("go")

    assert seen == [("broken", "error", True)]
