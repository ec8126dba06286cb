"""Confirmations that pause: what an answer holds for."""

from __future__ import annotations

import json

import pytest

from ropewalk import Replace, current_run, hookimpl
from ropewalk.kits.snapshot import Snapshot
from ropewalk_interventions import Confirm, Deny, Proceed, Transform
from ropewalk_testing import assert_valid_history, use


def asking(event):
    return Confirm(f"run {event.tool_use['name']}?")


TWO = [[use("danger", {"n": 1}, id="A"), use("safe", {"n": 2}, id="B")], "done"]


class Swap:
    """A plugin whose hook changes the input of every call, to what it has at the time."""

    name = "swap"
    order = -5
    to = None

    @hookimpl
    async def around_tool_call(self, call, call_next):
        return await call_next(call if self.to is None else call.with_input(self.to))


def test_a_confirmation_pauses_the_run_under_the_handlers_name(make_agent, handler, danger):
    agent = make_agent(handler("guard", before_tool_call=asking))

    result = agent("go")

    assert result.stop_reason == "interrupt"
    (question,) = result.interrupts
    assert (question.name, question.reason) == ("guard", "run danger?")
    assert question.id.startswith("v1:before_tool_call:A:")
    assert (danger.ran, len(agent.messages)) == ([], 2)


def test_a_yes_runs_the_tool_and_calls_the_model_once_more(make_agent, handler, danger, answer):
    agent = make_agent(handler(before_tool_call=asking))
    result = agent("go")

    result = agent(answer(result, "y"))

    assert (str(result), danger.ran, agent.model.calls) == ("done\n", [{"path": "x"}], 2)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("response", ["n", "", False, None, 0, "whatever", {"y": True}])
def test_every_other_answer_is_a_no(make_agent, handler, danger, answer, outcome, response):
    agent = make_agent(handler(before_tool_call=asking))
    result = agent("go")

    result = agent(answer(result, response))

    assert (str(result), danger.ran) == ("done\n", [])
    assert outcome(agent) == {"A": ("error", "CONFIRMATION_FAILED: run danger?")}


def test_two_calls_are_asked_about_and_answered_each_for_itself(make_agent, handler, danger, safe, answer, outcome):
    agent = make_agent(handler(before_tool_call=asking), turns=TWO)
    result = agent("go")
    assert [each.reason for each in result.interrupts] == ["run danger?", "run safe?"]

    result = agent(list(reversed(answer(result, "n", "y"))))

    assert (str(result), danger.ran, safe.ran) == ("done\n", [], [{"n": 2}])
    assert outcome(agent)["A"] == ("error", "CONFIRMATION_FAILED: run danger?")


def test_a_partial_answer_leaves_the_other_question_open_with_its_id(make_agent, handler, danger, safe, answer):
    agent = make_agent(handler(before_tool_call=asking), turns=TWO)
    first = agent("go")

    second = agent(answer(first, "y"))

    assert [each.id for each in second.interrupts] == [first.interrupts[1].id]
    assert (danger.ran, safe.ran) == ([{"n": 1}], [])
    assert str(agent(answer(second, "y"))) == "done\n"
    assert (danger.ran, safe.ran) == ([{"n": 1}], [{"n": 2}])


def test_two_handlers_ask_one_after_the_other(make_agent, handler, danger, answer):
    agent = make_agent(handler("a", before_tool_call=asking), handler("b", before_tool_call=asking))
    first = agent("go")
    second = agent(answer(first, "y"))

    assert [each.name for each in (*first.interrupts, *second.interrupts)] == ["a", "b"]
    assert danger.ran == []
    agent(answer(second, "y"))
    assert danger.ran == [{"path": "x"}]


def test_an_answer_holds_for_the_input_that_was_shown_and_for_no_other(make_agent, handler, danger, answer):
    swap = Swap()
    agent = make_agent(handler(before_tool_call=asking), plugins=[swap])
    first = agent("go")
    swap.to = {"path": "/etc"}

    second = agent(answer(first, "y"))

    assert second.stop_reason == "interrupt"
    assert second.interrupts[0].id != first.interrupts[0].id
    assert danger.ran == []
    agent(answer(second, "n"))
    assert danger.ran == []


def test_an_answer_holds_for_the_tool_that_was_shown_and_for_no_other(make_agent, handler, safe, danger, answer):
    other = type(danger)("danger")
    other.tool_spec = {**other.tool_spec, "description": "Does something else."}

    class Exchange:
        name = "exchange"
        on = False

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return await call_next(call.with_tool(other) if self.on else call)

    exchange = Exchange()
    agent = make_agent(handler(before_tool_call=asking), plugins=[exchange])
    first = agent("go")
    exchange.on = True

    assert agent(answer(first, "y")).stop_reason == "interrupt"
    assert (danger.ran, other.ran) == ([], [])


def test_a_handler_that_agreed_is_asked_again_when_a_later_one_changes_the_call(make_agent, handler, danger, answer):
    def ask(event):
        return Confirm(f"path {event.tool_use['input']['path']}?")

    def change(event):
        return Transform(lambda event: event.tool_use["input"].update(path="other"))

    agent = make_agent(handler("asks", before_tool_call=ask), handler("changes", before_tool_call=change))
    first = agent("go")
    second = agent(answer(first, "y"))

    assert [first.interrupts[0].reason, second.interrupts[0].reason] == ["path x?", "path other?"]
    assert danger.ran == []
    assert str(agent(answer(second, "y"))) == "done\n"
    assert danger.ran == [{"path": "other"}]


def test_a_preset_yes_does_not_hold_for_a_changed_call_either(make_agent, handler, danger, outcome):
    def ask(event):
        return Confirm("sure?", response=event.tool_use["input"]["path"] == "x")

    def change(event):
        return Transform(lambda event: event.tool_use["input"].update(path="other"))

    agent = make_agent(handler("asks", before_tool_call=ask), handler("changes", before_tool_call=change))

    agent("go")

    assert (danger.ran, outcome(agent)) == ([], {"A": ("error", "CONFIRMATION_FAILED: sure?")})


def test_two_handlers_that_change_a_call_in_turns_get_it_refused(make_agent, handler, danger, outcome):
    def ask_or_change(event):
        if event.tool_use["input"]["path"] == "x":
            return Confirm("sure?", response="y")

        return Transform(lambda event: event.tool_use["input"].update(path="x"))

    def change(event):
        return Transform(lambda event: event.tool_use["input"].update(path="other"))

    agent = make_agent(handler("asks", before_tool_call=ask_or_change), handler("changes", before_tool_call=change))

    agent("go")

    assert danger.ran == []
    assert "is changed again" in outcome(agent)["A"][1]


@pytest.mark.parametrize("then", [Proceed(), Transform(lambda event: None)])
def test_a_no_holds_when_the_handler_would_not_ask_any_more(make_agent, handler, danger, answer, outcome, then):
    moods = [Confirm("sure?"), then]
    agent = make_agent(handler("moody", before_tool_call=lambda event: moods.pop(0)))
    result = agent("go")

    agent(answer(result, "n"))

    assert danger.ran == []
    assert outcome(agent)["A"] == ("error", "CONFIRMATION_FAILED: the question of moody was not answered with yes")


def test_a_deny_after_the_yes_is_a_deny(make_agent, handler, danger, answer, outcome):
    moods = [Confirm("sure?"), Deny("too late")]
    agent = make_agent(handler(before_tool_call=lambda event: moods.pop(0)))

    agent(answer(agent("go"), "y"))

    assert (danger.ran, outcome(agent)) == ([], {"A": ("error", "DENIED: too late")})


def test_another_agent_goes_on_from_json(make_agent, handler, danger, answer):
    agent = make_agent(handler(before_tool_call=asking))
    result = agent("go")
    saved = json.dumps(agent.take_snapshot(preset="session").to_dict())
    answers = json.dumps(answer(result, "y"))

    other = make_agent(handler(before_tool_call=asking), turns=["done there"])
    other.load_snapshot(Snapshot.from_dict(json.loads(saved)))

    assert str(other(json.loads(answers))) == "done there\n"
    assert danger.ran == [{"path": "x"}]


def test_once_is_once_for_a_call_also_after_a_pause(make_agent, handler, answer, danger):
    looked = []

    async def ask(event):
        found = await event.once("look", lambda: looked.append(event.answered) or len(looked))
        return Confirm(f"look {found}?")

    agent = make_agent(handler(before_tool_call=ask))
    result = agent("go")
    agent(answer(result, "y"))

    assert looked == [False]
    assert danger.ran == [{"path": "x"}]


def test_direct_calls_within_a_run_remember_nothing_in_it(make_agent, handler, danger):
    looked, kept = [], []

    async def look(event):
        await event.once("look", lambda: looked.append(1))
        return Proceed()

    class Twice:
        name = "twice"

        @hookimpl
        async def around_model_call(self, request, call_next, agent):
            for _ in range(2):
                agent.tool.danger(path="x", record_direct_tool_call=False)

            kept.extend(current_run().once_results)
            return await call_next(request)

    agent = make_agent(handler(before_tool_call=look), plugins=[Twice()], turns=["done"])

    agent("go")

    assert (looked, kept, len(danger.ran)) == ([1, 1], [], 2)


def test_what_is_confirmed_is_what_other_plugins_have_made_of_the_call(make_agent, handler, danger, answer):
    class Rewrite:
        name = "rewrite"

        @hookimpl
        async def intervene(self, moment, subject):
            return Replace(subject.with_input({"path": "y"})) if moment == "before_tool_call" else None

    agent = make_agent(
        handler(before_tool_call=lambda event: Confirm(str(event.tool_use["input"]))), plugins=[Rewrite()]
    )
    result = agent("go")
    assert result.interrupts[0].reason == "{'path': 'y'}"

    agent(answer(result, "y"))

    assert danger.ran == [{"path": "y"}]


def test_a_cancelled_run_is_not_paused(make_agent, handler, danger):
    def cancel_and_ask(event):
        event.agent.cancel()
        return Confirm("sure?")

    agent = make_agent(handler(before_tool_call=cancel_and_ask))

    assert agent("go").stop_reason == "cancelled"
    assert danger.ran == []
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("time_limit", [None, 30])
@pytest.mark.parametrize(
    "moment", ["before_invocation", "before_model_call", "after_model_call", "before_tool_call", "after_tool_call"]
)
@pytest.mark.parametrize("on_error", ["throw", "proceed", "deny"])
def test_a_handler_may_ask_questions_of_its_own_everywhere(
    make_agent, handler, danger, answer, moment, time_limit, plain, on_error
):
    heard = []

    def ask(event):
        heard.append(current_run().interrupt("which", {"moment": moment}))
        return Proceed()

    async def ask_async(event):
        return ask(event)

    body = {moment: ask if plain else ask_async}
    agent = make_agent(handler(time_limit=time_limit, on_error=on_error, **body))
    result = agent("go")
    for _ in range(3):
        if result.stop_reason != "interrupt":
            break

        assert [each.reason for each in result.interrupts] == [{"moment": moment}]
        result = agent(answer(result, False))

    assert (result.stop_reason, str(result)) == ("end_turn", "done\n")
    assert set(heard) == {False}
    assert danger.ran == [{"path": "x"}]
    assert_valid_history(agent.messages)
