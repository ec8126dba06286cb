"""Pins on messages."""

from __future__ import annotations

import pytest

from ropewalk.kits.context import is_pinned, pinned_as, pinned_places

USER = {"role": "user", "content": [{"text": "words"}]}
CALL = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]}
RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "status": "success", "content": []}}]}


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"custom": None}, {"custom": {"pinned": False}}, {"custom": {"note": 1}}, "odd", {"custom": ["pinned"]}],
)
def test_a_message_without_a_true_pin_is_not_pinned(metadata):
    assert not is_pinned({**USER, "metadata": metadata})


def test_a_pin_is_set_and_taken_away_on_a_copy():
    pinned = pinned_as(USER)
    assert pinned == {**USER, "metadata": {"custom": {"pinned": True}}}
    assert is_pinned(pinned)
    assert not is_pinned(USER)
    assert pinned_as(pinned, pinned=False) == USER


def test_other_metadata_survives_a_pin_and_its_end():
    noted = {**USER, "metadata": {"usage": 3, "custom": {"note": 1}}}
    pinned = pinned_as(noted)
    assert pinned["metadata"] == {"usage": 3, "custom": {"note": 1, "pinned": True}}
    assert pinned_as(pinned, pinned=False) == noted


@pytest.mark.parametrize(
    ("pinned", "expected"),
    [([1], {1, 2}), ([2], {1, 2}), ([0], {0}), ([], set())],
    ids=["call", "results", "task", "none"],
)
def test_a_pin_covers_the_whole_tool_turn(pinned, expected):
    messages = [USER, CALL, RESULT]
    assert pinned_places([pinned_as(m) if i in pinned else m for i, m in enumerate(messages)]) == expected


def test_the_first_messages_count_as_pinned_when_asked():
    assert pinned_places([USER, CALL, RESULT, USER], first=2) == {0, 1, 2}
