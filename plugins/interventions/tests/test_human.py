"""HumanInTheLoop: what is asked, how, and what an answer does."""

from __future__ import annotations

import asyncio
import io
import json
import threading

import pytest

from ropewalk import hookimpl
from ropewalk.kits.snapshot import Snapshot
from ropewalk_interventions import HumanInTheLoop
from ropewalk_testing import use

TWICE = [[use("danger", {"n": 1}, id="A"), use("danger", {"n": 2}, id="B")], "done"]


# -- the list ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "runs"),
    [
        ([], False),
        (["safe"], False),
        (["danger"], True),
        (["*"], True),
        (["*", "!danger"], False),
        (["*", "!safe"], True),
        (["danger", "!danger"], False),
        (["!safe"], False),
        ({"danger"}, True),
    ],
)
def test_the_list_says_what_runs_without_a_question(make_agent, danger, allowed, runs):
    result = make_agent(HumanInTheLoop(allowed_tools=allowed))("go")

    assert (result.stop_reason == "end_turn", bool(danger.ran)) == (runs, runs)


def test_the_question_names_the_tool_and_its_whole_input(make_agent):
    turns = [use("danger", {"path": "x" * 500, "ü": 1}, id="A")]
    (question,) = make_agent(HumanInTheLoop(), turns=turns)("go").interrupts

    assert question.name == "human-in-the-loop"
    assert question.reason == f'Run the tool danger with {{"path": "{"x" * 500}", "ü": 1}}? (y/n)'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"allowed_tools": "danger"}, "allowed_tools='danger'"),
        ({"allowed_tools": [5]}, "allowed_tools"),
        ({"ask": "terminal"}, "ask='terminal'"),
        ({"classifier": 5}, "classifier=5"),
    ],
)
def test_wrong_arguments_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        HumanInTheLoop(**arguments)


# -- asking ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("response", "runs"), [("y", True), ("n", False), (None, False), (False, False)])
def test_an_interrupt_is_answered(make_agent, danger, answer, response, runs):
    agent = make_agent(HumanInTheLoop())
    agent(answer(agent("go"), response))

    assert bool(danger.ran) == runs


@pytest.mark.parametrize(("response", "runs"), [("y", True), (True, True), ("n", False), (None, False), ("", False)])
def test_a_function_is_asked_in_a_thread(make_agent, danger, response, runs):
    asked = []

    def ask(prompt):
        asked.append((prompt, threading.current_thread() is threading.main_thread()))
        return response

    assert str(make_agent(HumanInTheLoop(ask=ask))("go")) == "done\n"

    assert asked == [('Run the tool danger with {"path": "x"}? (y/n)', False)]
    assert bool(danger.ran) == runs


async def test_a_coroutine_function_is_awaited(make_agent, danger):
    async def ask(prompt):
        await asyncio.sleep(0)
        return "yes"

    await make_agent(HumanInTheLoop(ask=ask)).invoke_async("go")

    assert len(danger.ran) == 1


@pytest.mark.parametrize(
    ("typed", "runs"), [("y\n", True), (" YES \n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_the_terminal_is_asked(make_agent, danger, monkeypatch, capsys, typed, runs):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    make_agent(HumanInTheLoop(ask="stdio"))("go")

    assert capsys.readouterr().err == 'Run the tool danger with {"path": "x"}? (y/n) '
    assert bool(danger.ran) == runs


@pytest.mark.parametrize("closed", [True, False])
def test_without_an_input_nothing_is_approved(make_agent, danger, monkeypatch, closed):
    stream = io.StringIO("y\n")
    stream.close()
    monkeypatch.setattr("sys.stdin", stream if closed else None)

    make_agent(HumanInTheLoop(ask="stdio"))("go")

    assert danger.ran == []


def test_what_a_model_says_cannot_steer_the_terminal(make_agent, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    turns = [use("danger", {"path": "\x1b[2K\r safe \u202e\x9b"}, id="A"), "done"]

    make_agent(HumanInTheLoop(ask="stdio"), turns=turns)("go")

    assert not any(bad in capsys.readouterr().err for bad in "\x1b\r\u202e\x9b")


def test_questions_of_calls_at_once_come_one_after_the_other(make_agent, danger, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nn\n"))

    make_agent(HumanInTheLoop(ask="stdio"), turns=TWICE)("go")

    assert len(danger.ran) == 1


def test_a_function_that_fails_stops_the_run(make_agent, danger):
    def ask(prompt):
        raise OSError("no line")

    with pytest.raises(OSError, match="no line"):
        make_agent(HumanInTheLoop(ask=ask))("go")

    assert danger.ran == []


def test_an_evaluation_of_ones_own_decides(make_agent, danger, answer):
    agent = make_agent(HumanInTheLoop(evaluate=lambda response: response == {"code": 7}))
    agent(answer(agent("go"), {"code": 7}))

    assert len(danger.ran) == 1


def test_somebody_who_was_asked_before_a_pause_is_not_asked_again(make_agent, danger, answer):
    asked = []
    first = HumanInTheLoop(ask=lambda prompt: asked.append(prompt) or "y", name="first")
    agent = make_agent(first, HumanInTheLoop(name="second"))

    agent(answer(agent("go"), "y"))

    assert (len(asked), len(danger.ran)) == (1, 1)


# -- trust -------------------------------------------------------------------------------------------------------------


def test_a_trusted_tool_is_not_asked_about_again(make_agent, danger, answer):
    turns = [use("danger", {"n": 1}, id="A"), use("danger", {"n": 2}, id="B"), "done"]
    agent = make_agent(HumanInTheLoop(enable_trust=True), turns=turns)
    result = agent("go")
    assert result.interrupts[0].reason.endswith("(y/n, or t to trust the tool from now on)")

    assert str(agent(answer(result, "t"))) == "done\n"
    assert danger.ran == [{"n": 1}, {"n": 2}]


def test_a_yes_is_no_trust(make_agent, danger, answer):
    turns = [use("danger", {"n": 1}, id="A"), use("danger", {"n": 2}, id="B"), "done"]
    agent = make_agent(HumanInTheLoop(enable_trust=True), turns=turns)

    assert agent(answer(agent("go"), "y")).stop_reason == "interrupt"
    assert danger.ran == [{"n": 1}]


def test_trust_that_is_not_enabled_is_a_no(make_agent, danger, answer):
    agent = make_agent(HumanInTheLoop())
    agent(answer(agent("go"), "t"))

    assert danger.ran == []


def test_a_no_to_one_call_holds_although_the_other_one_trusts_the_tool(make_agent, danger, answer, outcome):
    agent = make_agent(HumanInTheLoop(enable_trust=True), turns=TWICE)
    agent(answer(agent("go"), "t", "n"))

    assert danger.ran == [{"n": 1}]
    assert outcome(agent)["B"][1].startswith("CONFIRMATION_FAILED")


def test_an_answer_of_ones_own_form_holds_although_the_other_one_trusts_the_tool(make_agent, danger, answer):
    agent = make_agent(HumanInTheLoop(enable_trust=True, evaluate=lambda response: response == "aye"), turns=TWICE)
    agent(answer(agent("go"), "t", "aye"))

    assert danger.ran == [{"n": 1}, {"n": 2}]


def test_trust_survives_in_a_snapshot_and_belongs_to_one_agent(make_agent, danger, answer):
    human = HumanInTheLoop(enable_trust=True)
    agent = make_agent(human)
    agent(answer(agent("go"), "t"))
    saved = json.dumps(agent.take_snapshot(preset="session", include=["plugin_state"]).to_dict())

    stranger, heir = make_agent(human), make_agent(human)
    heir.load_snapshot(Snapshot.from_dict(json.loads(saved)))

    assert stranger("go").stop_reason == "interrupt"
    assert heir("go").stop_reason == "end_turn"


def test_an_evaluation_of_trust_of_ones_own_decides(make_agent, danger, answer):
    agent = make_agent(HumanInTheLoop(enable_trust=True, evaluate_trust=lambda response: response == "forever"))
    agent(answer(agent("go"), "forever"))

    assert agent.plugin_state("interventions").get("trusted") == {"human-in-the-loop": ["danger"]}
    assert len(danger.ran) == 1


# -- another tool behind the name --------------------------------------------------------------------------------------


@pytest.fixture
def swapped(make_agent, danger):
    """An agent whose hook runs `danger` when the model asks for `safe`: `swapped(handler, ...)`."""

    class Swaps:
        name = "swaps"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return await call_next(call.with_tool(danger) if call.tool_use["name"] == "safe" else call)

    def make(handler, ids="A"):
        return make_agent(handler, turns=[*[use("safe", {"n": 1}, id=each) for each in ids], "done"], plugins=[Swaps()])

    return make


@pytest.mark.parametrize(
    ("allowed", "runs"),
    [(["safe"], False), (["*", "!danger"], False), (["*", "!safe"], False), (["danger"], True), (["*"], True)],
)
def test_the_list_is_about_the_tool_that_would_run(swapped, danger, allowed, runs):
    result = swapped(HumanInTheLoop(allowed_tools=allowed))("go")

    assert (result.stop_reason == "end_turn", bool(danger.ran)) == (runs, runs)


def test_the_question_names_the_tool_that_would_run(swapped):
    (question,) = swapped(HumanInTheLoop())("go").interrupts

    assert question.reason == 'Run the tool danger, in the place of safe, with {"n": 1}? (y/n)'


def test_trust_is_in_the_tool_that_ran(swapped, danger, answer):
    agent = swapped(HumanInTheLoop(enable_trust=True), ids="AB")
    agent(answer(agent("go"), "t"))

    assert danger.ran == [{"n": 1}, {"n": 1}]
    assert agent.plugin_state("interventions").get("trusted") == {"human-in-the-loop": ["danger"]}


def test_a_classifier_is_told_of_the_tool_that_would_run(swapped):
    told = []
    agent = swapped(HumanInTheLoop(classifier=lambda event: told.append(event.selected_tool.tool_name)))
    agent("go")

    assert told == ["danger"]
