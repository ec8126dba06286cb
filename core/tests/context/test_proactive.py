"""The threshold of compression."""

from __future__ import annotations

import logging
import math

import pytest

from ropewalk.kits.calls.edits import ContextRequest
from ropewalk.kits.context import UNKNOWN_WINDOW, is_due, proactive, threshold_of, window_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (False, None),
        (True, 0.7),
        ({"compression_threshold": 0.85}, 0.85),
        ({"compression_threshold": 1}, 1.0),
        ({}, 0.7),
    ],
)
def test_a_threshold_is_read(value, expected):
    assert threshold_of(value, "Manager") == expected


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        "yes",
        [],
        {"threshold": 0.5},
        *({"compression_threshold": x} for x in (0, -1, 1.01, True, "1", None, math.nan)),
    ],
    ids=repr,
)
def test_what_is_no_threshold_is_refused_with_what_to_give(value):
    with pytest.raises(ValueError, match=r"Manager: proactive_compression=.*compression_threshold"):
        threshold_of(value, "Manager")


@pytest.mark.parametrize(("tokens", "due"), [(699, False), (700, True), (5_000, True)])
def test_compression_is_due_at_the_threshold(tokens, due):
    request = ContextRequest([], [], lambda: tokens, 1_000)
    assert is_due(request, 0.7, "p") is due


def test_without_a_threshold_nothing_is_counted():
    assert not is_due(ContextRequest([], [], lambda: 1 // 0, 1_000), None, "p")


def test_an_unknown_window_is_assumed_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(proactive, "_assumed", set())
    request = ContextRequest([], [], lambda: 0)
    with caplog.at_level(logging.WARNING, "ropewalk.context"):
        assert [window_of(request, "p"), window_of(request, "p")] == [UNKNOWN_WINDOW, UNKNOWN_WINDOW]

    assert [record.message.count("200000") for record in caplog.records] == [1]
    assert "context_window_limit" in caplog.text
