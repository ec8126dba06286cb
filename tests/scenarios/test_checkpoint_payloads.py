"""A27: payloads of checkpoints that are of another version, edited, stale or foreign."""

from __future__ import annotations

import copy
import json

import pytest

from ropewalk import Agent, Checkpoint, CheckpointException, tool
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use


@pytest.fixture
def ran():
    return []


@pytest.fixture
def paused(ran):
    """Makes an agent that is paused after the model, and the checkpoint."""

    @tool
    def step() -> str:
        """Takes a step."""
        ran.append(1)
        return "done"

    def make():
        agent = Agent(
            ScriptedModel([use("step", {}), use("step", {}), "end"]),
            tools=[step],
            callback_handler=None,
            checkpointing=True,
        )
        return agent, agent("go").checkpoint.to_dict()

    return make


def resume(agent, checkpoint):
    return agent({"checkpointResume": {"checkpoint": checkpoint}})


def refused(agent, checkpoint, text="checkpoint|the run cannot go on"):
    """Checks that a checkpoint is refused, and that nothing has changed by that."""
    before = copy.deepcopy(list(agent.messages)), agent.suspension, agent.model.calls
    with pytest.raises(CheckpointException, match=text):
        resume(agent, checkpoint)

    assert (list(agent.messages), agent.suspension, agent.model.calls) == before


MALFORMED = [
    ({"schema_version": "9.0"}, "schema version '9.0'"),
    ({"schema_version": ...}, "schema version None"),
    ({"position": "before_lunch"}, "position 'before_lunch'"),
    ({"position": ...}, "no 'position'"),
    ({"position": None}, "position None"),
    ({"position": ["after_model"]}, "position of type list"),
    ({"cycle_index": -5}, "cycle_index -5"),
    ({"cycle_index": "1"}, "cycle_index '1'"),
    ({"cycle_index": True}, "cycle_index True"),
    ({"cycle_index": False}, "cycle_index False"),
    ({"cycle_index": 0.0}, "cycle_index 0.0"),
    ({"cycle_index": None}, "cycle_index None"),
    ({"cycle_index": ...}, "no 'cycle_index'"),
]


@pytest.mark.parametrize(("change", "text"), MALFORMED, ids=str)
def test_a_malformed_checkpoint_is_refused(paused, ran, change, text):
    agent, checkpoint = paused()
    edited = {key: value for key, value in {**checkpoint, **change}.items() if value is not ...}

    refused(agent, edited, text)
    assert ran == []
    resume(agent, checkpoint)
    assert ran == [1]


@pytest.mark.parametrize("value", ["after_model", "", 3, True, [], [{}], {}], ids=repr)
def test_something_in_the_place_of_the_object_is_refused(paused, ran, value):
    agent, _ = paused()
    refused(agent, value)
    assert ran == []


def test_an_unknown_extra_key_is_warned_of(paused, ran, caplog):
    agent, checkpoint = paused()
    agent({"checkpointResume": {"checkpoint": {**checkpoint, "extra": 1}, "note": "mine"}})

    assert [record.name for record in caplog.records] == ["ropewalk.checkpoint"] * 2
    assert ["'extra'" in caplog.text, "'note'" in caplog.text] == [True, True]
    assert ran == [1]


def test_keys_in_another_order_are_the_same_checkpoint(paused, ran):
    agent, checkpoint = paused()
    resume(agent, dict(reversed(checkpoint.items())))
    assert ran == [1]


def test_a_checkpoint_that_was_used_never_runs_tools_again(paused, ran):
    agent, first = paused()
    result = resume(agent, first)
    refused(agent, first, "waits after_tools of cycle 0")
    while result.stop_reason == "checkpoint":
        result = resume(agent, result.checkpoint.to_dict())
        refused(agent, first)

    refused(agent, first, "no run of this agent waits")
    assert ran == [1, 1]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize(("position", "cycle"), [("after_tools", 0), ("after_model", 1), ("after_model", 7)])
def test_a_checkpoint_of_another_place_is_refused(paused, ran, position, cycle):
    agent, _ = paused()
    refused(agent, Checkpoint(position, cycle).to_dict(), "and the run waits after_model of cycle 0")
    assert ran == []


def test_a_checkpoint_against_an_empty_history_is_refused(paused, ran):
    agent, checkpoint = paused()
    fresh = Agent(ScriptedModel(["end"]), callback_handler=None, checkpointing=True)
    refused(fresh, checkpoint, "no run of this agent waits")

    agent.messages.clear()
    refused(agent, checkpoint, "the history is not the one")
    assert ran == []


def appended(messages):
    messages.append({"role": "user", "content": [{"text": "more"}]})


def reworded(messages):
    messages[0] = {"role": "user", "content": [{"text": "stop"}]}


def other_input(messages):
    edited = copy.deepcopy(messages[-1])
    edited["content"][0]["toolUse"]["input"] = {"path": "/"}
    messages[-1] = edited


@pytest.mark.parametrize("edit", [appended, reworded, other_input, lambda messages: messages.pop()])
def test_a_checkpoint_against_an_edited_history_is_refused(paused, ran, edit):
    agent, checkpoint = paused()
    kept = copy.deepcopy(list(agent.messages))
    edit(agent.messages)
    refused(agent, checkpoint, "the history is not the one")
    assert ran == []

    agent.messages[:] = kept
    resume(agent, checkpoint)
    assert ran == [1]


def test_a_tool_that_was_removed_is_named(paused, ran):
    agent, checkpoint = paused()
    removed = agent.tool_registry.get("step")
    agent.tool_registry.remove("step")
    refused(agent, checkpoint, "no tool 'step' any more")

    agent.tool_registry.add(removed)
    resume(agent, checkpoint)
    assert ran == [1]


@pytest.mark.parametrize("moved", ["messages", "suspension"])
def test_a_pause_and_a_history_that_do_not_belong_together_are_refused(paused, ran, moved):
    agent, checkpoint = paused()
    other = Agent(ScriptedModel(["hi"]), callback_handler=None, checkpointing=True, tools=[])
    other("hello")
    snapshot = json.loads(json.dumps(agent.take_snapshot(preset="session").to_dict()))
    data = other.take_snapshot(preset="session").to_dict()["data"]
    snapshot["data"]["messages" if moved == "suspension" else "suspension"] = data[
        "messages" if moved == "suspension" else "suspension"
    ]
    other.load_snapshot(Snapshot.from_dict(snapshot))

    refused(other, checkpoint)
    assert ran == []
