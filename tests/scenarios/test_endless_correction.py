"""Structured output that is never right, and output that is nearly right (scenario A23)."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from ropewalk import StructuredOutputException
from ropewalk_testing import assert_valid_history, use


class Pair(BaseModel):
    n: int
    s: str


class Lists(BaseModel):
    numbers: list[int]
    pairs: list[Pair]


NOISE = "noise " * 500


@pytest.mark.parametrize("answer", [use("Pair", {"s": "x"}), '{"s": "x"}', "no"], ids=["tool", "json", "text"])
def test_a_model_that_is_never_right_is_asked_a_few_times(ask, make_agent, answer):
    """Scenario A23: a small bound, and an error that carries the last problem."""
    agent, model = make_agent(lambda _: answer)
    with pytest.raises(StructuredOutputException) as caught:
        ask(agent, "Go.", structured_output_model=Pair)

    assert model.calls <= 4
    assert ("'no'" if answer == "no" else "Field 'n': Field required") in str(caught.value)
    assert_valid_history(agent.messages)


def test_a_correction_does_not_repeat_the_input(ask, make_agent, tool_results):
    """Scenario A23."""
    agent, _ = make_agent(
        lambda _: use("Lists", {"numbers": [NOISE] * 4, "pairs": [{"s": NOISE}, {"n": NOISE, "s": 1}, NOISE]})
    )
    with pytest.raises(StructuredOutputException) as caught:
        ask(agent, "Go.", structured_output_model=Lists)

    for result in tool_results(agent.messages):
        assert len(result["content"][0]["text"]) < 2_000

    assert len(str(caught.value)) < 2_000


def test_lists_that_are_sent_as_texts_are_taken(ask, make_agent):
    """Scenario A23: done in two calls at most."""
    wrong = {"numbers": "[1, 2]", "pairs": json.dumps([{"n": 1, "s": "x"}])}
    agent, model = make_agent([use("Lists", wrong), use("Lists", {"numbers": [1, 2], "pairs": [{"n": 1, "s": "x"}]})])

    result = ask(agent, "Go.", structured_output_model=Lists)

    assert result.structured_output == Lists(numbers=[1, 2], pairs=[Pair(n=1, s="x")])
    assert model.calls <= 2
    assert json.loads(json.dumps(agent.messages[1]["content"][0]["toolUse"]["input"])) == wrong
