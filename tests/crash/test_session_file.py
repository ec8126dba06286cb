"""Sessions in files, killed before and after every record."""

from __future__ import annotations

import functools

import pytest

from ropewalk.kits.sessions.retention import Retention
from ropewalk_testing import crash

pytest.importorskip("ropewalk_session_file")

WHOLE = crash.Scenario(subagents=2, plugins=("subagents",))


def open_store(folder, durability="process"):
    from ropewalk_session_file import FileLogStore

    return FileLogStore(folder, durability=durability)


def test_every_crash_is_survived():
    report = crash.run(open_store, WHOLE, processes=2)

    report.check()
    assert report.points > 150
    assert report.kills + report.missed == report.points


def test_two_crashes_in_a_row_are_survived(sample):
    crash.run(open_store, WHOLE, crashes=2, sample=sample, seed=1, processes=2).check()


@pytest.mark.parametrize("retention", [Retention(keep_last=1), Retention(compact_to_latest=True)], ids=str)
def test_crashes_around_compactions_are_survived(sample, retention):
    scenario = crash.Scenario(subagents=2, plugins=("subagents",), retention=retention)
    crash.run(open_store, scenario, sample=sample, seed=2, processes=2).check()


def test_crashes_with_power_durability_are_survived(sample):
    power = functools.partial(open_store, durability="power")
    crash.run(power, WHOLE, sample=sample, seed=3, processes=2).check()
