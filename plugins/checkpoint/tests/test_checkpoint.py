"""The marker, and payloads that hold one."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ropewalk_checkpoint import Checkpoint, CheckpointException
from ropewalk_checkpoint.checkpoint import checkpoint_in, shown

GOOD = {"position": "after_model", "cycle_index": 0, "schema_version": "1.0"}


@pytest.mark.parametrize("position", ["after_model", "after_tools"])
@pytest.mark.parametrize("cycle", [0, 1, 10**6])
def test_it_survives_json(position, cycle):
    checkpoint = Checkpoint(position, cycle)
    plain = checkpoint.to_dict()
    assert list(plain) == ["position", "cycle_index", "schema_version"]
    assert Checkpoint.from_dict(json.loads(json.dumps(plain))) == checkpoint


def test_it_is_a_frozen_value_with_a_version_that_nobody_gives():
    checkpoint = Checkpoint("after_model")
    assert (checkpoint.cycle_index, checkpoint.schema_version) == (0, "1.0")
    assert len({checkpoint, Checkpoint("after_model"), Checkpoint("after_tools")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        checkpoint.position = "after_tools"
    with pytest.raises(TypeError):
        Checkpoint("after_model", 0, schema_version="1.0")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema_version": "1.1"}, "schema version '1.1', and this is '1.0'"),
        ({"schema_version": 1.0}, "schema version 1.0"),
        ({"schema_version": ...}, "schema version None"),
        ({"position": "AFTER_MODEL"}, "position 'AFTER_MODEL': there are 'after_model' and 'after_tools'"),
        ({"position": 1}, "position 1"),
        ({"position": ...}, "no 'position'"),
        ({"cycle_index": -1}, "cycle_index -1: it is a whole number, from 0"),
        ({"cycle_index": "0"}, "cycle_index '0'"),
        ({"cycle_index": False}, "cycle_index False"),
        ({"cycle_index": 1.0}, "cycle_index 1.0"),
        ({"cycle_index": [0]}, "cycle_index of type list"),
        ({"cycle_index": ...}, "no 'cycle_index'"),
    ],
    ids=str,
)
def test_what_is_no_checkpoint_is_refused(change, text):
    data = {key: value for key, value in {**GOOD, **change}.items() if value is not ...}
    with pytest.raises(CheckpointException, match="the checkpoint has ") as caught:
        Checkpoint.from_dict(data)

    assert text in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("data", [None, "after_model", 3, [GOOD], Checkpoint("after_model")], ids=repr)
def test_what_is_no_dict_is_refused(data):
    with pytest.raises(CheckpointException, match=r"the checkpoint is .*, and not a dict: pass what"):
        Checkpoint.from_dict(data)


@pytest.mark.parametrize("payload", [None, "x", [], {}, {"checkpoint": None}, {"Checkpoint": GOOD}, GOOD], ids=repr)
def test_a_payload_without_one_is_refused(payload):
    with pytest.raises(CheckpointException, match=r'pass \{"checkpointResume": \{"checkpoint": '):
        checkpoint_in(payload)


def test_unknown_keys_are_warned_of_and_ignored(caplog):
    payload = {"checkpoint": {**GOOD, "b": 1, "a": 2}, 3: None}
    assert checkpoint_in(payload) == Checkpoint("after_model")
    assert [record.getMessage() for record in caplog.records] == [
        "the checkpoint holds the unknown 'a', 'b', which is ignored",
        "\"checkpointResume\" holds the unknown '3', which is ignored",
    ]


def test_a_refused_checkpoint_is_not_warned_of(caplog):
    with pytest.raises(CheckpointException):
        Checkpoint.from_dict({**GOOD, "extra": 1, "position": "nowhere"})

    assert caplog.records == []


def test_long_values_are_cut_in_errors():
    assert shown("x" * 500) == "'" + "x" * 59 + "..."
