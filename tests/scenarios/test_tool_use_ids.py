"""Tool-use ids that repeat or are illegal, and results that are shared (scenario A10)."""

from __future__ import annotations

import copy
import re

import pytest

from ropewalk import tool
from ropewalk_testing import assert_valid_history, use

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@tool
def echo(value: str) -> str:
    """Echoes."""
    return value


def ids_and_values(messages):
    """For each use in order: its id, and what its result says."""
    results = {
        block["toolResult"]["toolUseId"]: block["toolResult"]["content"][0]["text"]
        for message in messages
        for block in message["content"]
        if "toolResult" in block
    }
    uses = [block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block]
    return [(u["toolUseId"], u["input"]["value"], results[u["toolUseId"]]) for u in uses]


def test_two_calls_of_one_id_get_ids_of_their_own(ask, make_agent):
    """Scenario A10."""
    agent, model = make_agent(
        [[use("echo", {"value": "x"}, id="A"), use("echo", {"value": "y"}, id="A")], "ok"], tools=[echo]
    )

    ask(agent, "go")

    pairs = ids_and_values(agent.messages)
    assert [(asked, answered) for _, asked, answered in pairs] == [("x", "x"), ("y", "y")]
    assert pairs[0][0] == "A"
    assert_valid_history(agent.messages)
    assert_valid_history(model.requests[1].messages)


def test_an_id_of_an_earlier_turn_is_made_unique(ask, make_agent):
    """Scenario A10."""
    turns = [use("echo", {"value": v}, id="A") for v in ("x", "y", "z")]
    agent, _ = make_agent([turns[0], turns[1], "ok", turns[2], "ok"], tools=[echo])

    ask(agent, "go")
    ask(agent, "again")

    assert [(asked, answered) for _, asked, answered in ids_and_values(agent.messages)] == [(v, v) for v in "xyz"]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("bad", ["call_1|fc_2", "", "x" * 80, "a b", "ü", "a.b", "../x"])
def test_an_illegal_id_is_made_legal_and_its_result_follows(ask, make_agent, bad):
    """Scenario A10."""
    agent, model = make_agent([use("echo", {"value": "x"}, id=bad), "ok"], tools=[echo])

    ask(agent, "go")

    ((made, _, answered),) = ids_and_values(agent.messages)
    assert LEGAL_ID.fullmatch(made)
    assert answered == "x"
    assert_valid_history(model.requests[1].messages)


def test_illegal_ids_that_differ_stay_different(ask, make_agent):
    """Scenario A10."""
    bad = ["x" * 80, "x" * 81, "a|b", "a.b", "a b", "a_b"]
    turns = [[use("echo", {"value": str(i)}, id=each) for i, each in enumerate(bad)], "ok"]
    agent, _ = make_agent(turns, tools=[echo])

    ask(agent, "go")

    pairs = ids_and_values(agent.messages)
    assert len({made for made, _, _ in pairs}) == len(bad)
    assert all(asked == answered for _, asked, answered in pairs)
    assert_valid_history(agent.messages)


def test_ids_in_the_callers_messages_are_repaired_in_the_copy_only(ask, make_agent):
    """Scenario A10."""
    mine = [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a|b", "name": "echo", "input": {"value": "x"}}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a|b", "status": "success", "content": [{"text": "x"}]}}],
        },
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a|b", "name": "echo", "input": {"value": "y"}}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a|b", "status": "success", "content": [{"text": "y"}]}}],
        },
        {"role": "assistant", "content": [{"text": "done"}]},
    ]
    before = copy.deepcopy(mine)
    agent, model = make_agent(["ok"], tools=[echo], messages=mine)

    ask(agent, "more")

    assert mine == before
    assert [(asked, answered) for _, asked, answered in ids_and_values(agent.messages)] == [("x", "x"), ("y", "y")]
    assert all(LEGAL_ID.fullmatch(made) for made, _, _ in ids_and_values(model.requests[0].messages))
    assert_valid_history(model.requests[0].messages)


@pytest.mark.parametrize(
    "shared", [{"status": "success", "content": [{"text": "x"}]}, {"k": [1]}], ids=["result", "value"]
)
def test_one_object_returned_for_two_calls_is_never_written_to(ask, make_agent, tool_results, shared):
    """Scenario A10."""
    before = copy.deepcopy(shared)

    @tool
    def give() -> dict:
        """Gives the same object each time."""
        return shared

    agent, _ = make_agent(
        [[use("give", {}, id="A"), use("give", {}, id="B")], use("give", {}, id="C"), "ok"], tools=[give]
    )

    ask(agent, "go")

    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [(i, "success") for i in "ABC"]
    assert shared == before
    assert_valid_history(agent.messages)


def test_changing_a_returned_object_later_does_not_rewrite_the_history(ask, make_agent, tool_results):
    """Scenario A10."""
    shared = {"status": "success", "content": [{"text": "first"}]}

    @tool
    def give() -> dict:
        """Gives an object that it keeps changing."""
        return shared

    @tool
    def spoil() -> str:
        """Changes that object."""
        shared["content"][0]["text"] = "spoiled"
        shared["content"].append({"text": "more"})
        return "spoiled it"

    agent, _ = make_agent([use("give", {}), use("spoil", {}), "ok"], tools=[give, spoil])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "first"}]
