"""Processes that are killed before and after each write, and go on."""

from __future__ import annotations

import os

import pytest

from ropewalk.kits.sessions.retention import Retention
from ropewalk_session_file import FileLogStore
from ropewalk_testing import crash

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"), pytest.mark.long]


def open_store(folder):
    return FileLogStore(folder / "sessions")


def test_a_run_survives_every_crash():
    report = crash.run(open_store, processes=2)
    report.check()
    assert report.kills == report.points > 100


def test_a_run_survives_crashes_around_foldings():
    scenario = crash.Scenario(retention=Retention(compact_to_latest=True))
    crash.run(open_store, scenario, sample=20, seed=1, processes=2).check()
