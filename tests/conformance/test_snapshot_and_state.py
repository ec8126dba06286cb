from __future__ import annotations

import json

import pytest

from ropewalk import tool
from ropewalk.errors import MissingPluginError, SnapshotException
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@pytest.fixture
def used(make_agent, ask):
    agent, _ = make_agent([use("add", {"a": 1, "b": 2}), "three", "more"], tools=[add], state={"user": "ada"})
    ask(agent, "what is it?")
    return agent


def test_a_snapshot_goes_through_json_and_back(used, make_agent, ask):
    """Conformance 173."""
    value = json.loads(json.dumps(used.take_snapshot(preset="session", app_data={"tab": 1}).to_dict()))
    other, _ = make_agent(["go on"])
    other.load_snapshot(Snapshot.from_dict(value))

    assert other.messages == used.messages
    assert other.state.get("user") == "ada"
    assert str(ask(other, "and?")) == "go on\n"


def test_fields_are_included_and_left_out(used):
    """Conformance 173."""
    assert set(used.take_snapshot(include=["messages"]).data) == {"messages"}
    assert "messages" not in used.take_snapshot(preset="session", exclude=["messages"]).data


@pytest.mark.parametrize("asked", [{}, {"include": ["nonsense"]}, {"preset": "nonsense"}])
def test_a_field_that_is_none_is_refused(used, asked):
    """Conformance 173."""
    with pytest.raises(SnapshotException):
        used.take_snapshot(**asked)


def test_a_snapshot_of_another_version_is_refused_and_changes_nothing(used):
    """Conformance 173."""
    before = list(used.messages)
    value = {**used.take_snapshot(preset="session").to_dict(), "schema_version": "2.0"}

    with pytest.raises(SnapshotException, match=r"2\.0"):
        used.load_snapshot(Snapshot.from_dict(value))

    assert used.messages == before


def test_a_snapshot_is_a_deep_copy(used, ask):
    """Conformance 174."""
    snapshot = used.take_snapshot(preset="session")
    before = json.dumps(snapshot.data)
    ask(used, "again")
    used.messages[0]["content"][0]["text"] = "changed"
    used.state.set("user", "bob")

    assert json.dumps(snapshot.data) == before


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes"], ids=["object", "set", "nan", "bytes"])
def test_state_takes_json_only(used, value):
    """Conformance 175."""
    with pytest.raises(ValueError, match="JSON"):
        used.state.set("key", value)

    assert used.state.get("key") is None


def test_what_state_gives_is_a_copy(used):
    """Conformance 175."""
    used.state.set("list", [1])
    used.state.get("list").append(2)
    used.state.get()["list"].append(3)

    assert used.state.get("list") == [1]


@pytest.mark.parametrize("value", [object(), {"a": 1}, None, [object()]], ids=["object", "dict", "none", "list"])
def test_a_trace_attribute_of_a_wrong_type_is_named(make_agent, value):
    """Conformance 40."""
    with pytest.raises(TypeError, match=r"trace_attributes\['team'\]"):
        make_agent(["hi"], trace_attributes={"session": "s", "team": value})


def test_trace_attributes_that_are_right_need_the_plugin_that_writes_spans(make_agent):
    """Conformance 40."""
    with pytest.raises(MissingPluginError, match="ropewalk-telemetry"):
        make_agent(["hi"], trace_attributes={"session": "s", "tags": ["a", "b"], "n": 1})
