"""Classifiers: whether a call needs a human at all."""

from __future__ import annotations

import logging

import pytest

from ropewalk_interventions import HumanInTheLoop
from ropewalk_testing import use

CALL = use("danger", {"path": "x"}, id="A")


@pytest.mark.parametrize("said", ["SAFE", " SAFE\n"])
def test_a_model_that_says_safe_spares_the_question(make_agent, danger, said):
    agent = make_agent(HumanInTheLoop(classifier=True), turns=[CALL, said, "done"])

    assert str(agent("go")) == "done\n"
    assert danger.ran == [{"path": "x"}]
    assert "SAFE" not in str(agent.messages)


@pytest.mark.parametrize(
    "said",
    ["APPROVE", "safe", "It is SAFE.", "SAFE or APPROVE", "", use("danger", {}, id="B"), ConnectionError("gone")],
)
def test_everything_else_that_a_model_says_asks_a_human(make_agent, danger, said):
    agent = make_agent(HumanInTheLoop(classifier=True), turns=[CALL, said], retry_strategy=None)

    assert agent("go").stop_reason == "interrupt"
    assert danger.ran == []


def test_the_model_sees_the_call_as_data_and_the_rules(make_agent):
    agent = make_agent(HumanInTheLoop(classifier="Reading is safe."), turns=[CALL, "APPROVE"])
    agent("go")

    request = agent.model.requests[1]
    assert request.messages[0]["content"] == [
        {"text": '{"tool": "danger", "description": "Does danger.", "input": {"path": "x"}}'}
    ]
    assert request.system[0]["text"].endswith("Rules of this system:\nReading is safe.")
    assert request.tool_specs == ()


@pytest.mark.parametrize(("needed", "runs"), [(False, True), (True, False), (None, False), (0, False), ("no", False)])
def test_only_a_plain_no_of_a_function_spares_the_question(make_agent, danger, needed, runs):
    agent = make_agent(HumanInTheLoop(classifier=lambda event: needed))

    assert (agent("go").stop_reason == "end_turn", bool(danger.ran)) == (runs, runs)


async def test_a_function_may_be_async(make_agent, danger):
    async def classify(event):
        return event.tool_use["input"] != {"path": "x"}

    await make_agent(HumanInTheLoop(classifier=classify)).invoke_async("go")

    assert len(danger.ran) == 1


def test_a_classifier_that_fails_asks_a_human(make_agent, danger, caplog):
    def classify(event):
        raise ValueError("broken")

    agent = make_agent(HumanInTheLoop(classifier=classify))

    with caplog.at_level(logging.WARNING, "ropewalk.interventions"):
        assert agent("go").stop_reason == "interrupt"

    assert "a human is asked" in caplog.text
    assert danger.ran == []


def test_an_exception_of_the_list_is_asked_about_whatever_the_classifier_says(make_agent, danger):
    agent = make_agent(HumanInTheLoop(["!danger"], classifier=lambda event: False))

    assert agent("go").stop_reason == "interrupt"


def test_a_human_who_was_asked_decides_whatever_the_classifier_says_later(make_agent, danger, answer):
    agent = make_agent(HumanInTheLoop(classifier=True), turns=[CALL, "APPROVE", "SAFE", "done"])

    agent(answer(agent("go"), "n"))

    assert danger.ran == []


def test_a_direct_call_has_no_model_to_ask_and_needs_a_human(make_agent, danger):
    agent = make_agent(HumanInTheLoop(classifier=True, ask=lambda prompt: "n"))

    assert agent.tool.danger(path="x")["content"][0]["text"].startswith("CONFIRMATION_FAILED")
    assert danger.ran == []
