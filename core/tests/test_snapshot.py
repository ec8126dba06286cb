from __future__ import annotations

import asyncio
import json

import pytest
from kernel_fakes import FakeModel, FakeTool, use

from ropewalk import Agent
from ropewalk.errors import SnapshotException
from ropewalk.kits.snapshot import Snapshot


def used_agent():
    agent = Agent(model=FakeModel(use("add"), "three", "more"), tools=[FakeTool("add")], state={"user": "ada"})
    agent("what is it?")
    agent.plugin_state("counter").set("count", 3)
    return agent


def test_a_snapshot_goes_through_json_and_starts_another_agent():
    agent = used_agent()
    snapshot = agent.take_snapshot(preset="session", app_data={"tab": 2})

    other = Agent(model=FakeModel("and more"))
    other.load_snapshot(Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))))

    assert other.messages == agent.messages
    assert other.state.get() == {"user": "ada"}
    assert other.plugin_state("counter").get("count") == 3
    assert snapshot.app_data == {"tab": 2}
    assert str(other("go on")) == "and more\n"


def test_a_snapshot_shares_nothing_with_the_agent():
    agent = used_agent()
    snapshot = agent.take_snapshot(preset="session")
    before = json.dumps(snapshot.to_dict())

    agent("again")
    agent.state.set("user", "bob")
    agent.plugin_state("counter").set("count", 4)

    assert json.dumps(snapshot.to_dict()) == before


def test_what_is_loaded_shares_nothing_with_the_snapshot():
    snapshot = used_agent().take_snapshot(preset="session")
    before = json.dumps(snapshot.to_dict())
    other = Agent(model=FakeModel("and more"))
    other.load_snapshot(snapshot)
    other("go on")
    other.state.set("user", "bob")

    assert json.dumps(snapshot.to_dict()) == before


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"preset": "session"}, {"messages", "state", "plugin_state", "suspension"}),
        ({"include": ["messages"]}, {"messages"}),
        (
            {"preset": "session", "include": ["system_prompt"]},
            {"messages", "state", "plugin_state", "suspension", "system_prompt"},
        ),
        ({"preset": "session", "exclude": ["messages"]}, {"state", "plugin_state", "suspension"}),
        ({"include": ["conversation_manager_state"]}, {"plugin_state"}),
    ],
)
def test_the_fields_are_what_was_asked_for(asked, fields):
    assert set(used_agent().take_snapshot(**asked).data) == fields


def test_fields_that_are_not_in_the_snapshot_stay():
    agent = Agent(model=FakeModel("x"), state={"a": 1}, system_prompt="be brief")
    agent.load_snapshot(used_agent().take_snapshot(include=["messages"]))

    assert len(agent.messages) == 4
    assert agent.state.get() == {"a": 1}
    assert agent.system_prompt == "be brief"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "no field is left"),
        ({"include": ["mesages"]}, "no snapshot field 'mesages'"),
        ({"preset": "all"}, "no snapshot preset 'all'"),
        ({"preset": "session", "exclude": ["messages", "state", "plugin_state", "suspension"]}, "no field is left"),
        ({"preset": "session", "app_data": {"x": object()}}, "app_data is not JSON"),
        ({"preset": "session", "app_data": [1]}, "app_data is list"),
    ],
)
def test_what_cannot_be_captured_is_refused(asked, said):
    with pytest.raises(SnapshotException, match=said):
        used_agent().take_snapshot(**asked)


@pytest.mark.parametrize(
    "change", [{"schema_version": "9.0"}, {"scope": "graph"}, {"data": None}, {"data": {"mesages": []}}]
)
def test_a_snapshot_of_another_kind_is_refused_and_changes_nothing(change):
    agent = used_agent()
    before = list(agent.messages)
    value = {**agent.take_snapshot(preset="session").to_dict(), **change}

    with pytest.raises(SnapshotException):
        agent.load_snapshot(Snapshot.from_dict(value))

    assert agent.messages == before


async def test_a_running_agent_is_neither_captured_nor_replaced():
    started, release = asyncio.Event(), asyncio.Event()

    async def wait(call):
        started.set()
        await release.wait()
        return "waited"

    agent = Agent(model=FakeModel(use("wait"), "done"), tools=[FakeTool("wait", wait)])
    snapshot = Agent(state={"a": 1}).take_snapshot(include=["state"])
    run = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    with pytest.raises(SnapshotException, match="wait for the result"):
        agent.take_snapshot(preset="session")

    with pytest.raises(SnapshotException, match="wait for the result"):
        agent.load_snapshot(snapshot)

    release.set()
    await run
    assert agent.take_snapshot(preset="session").data["messages"] == agent.messages


def test_what_to_dict_gave_is_loaded_as_it_is():
    agent = used_agent()
    other = Agent(model=FakeModel())

    other.load_snapshot(json.loads(json.dumps(agent.take_snapshot(preset="session").to_dict())))

    assert other.messages == agent.messages
    with pytest.raises(SnapshotException, match="a snapshot is a dict"):
        other.load_snapshot({"messages": []})
