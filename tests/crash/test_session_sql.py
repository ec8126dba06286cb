"""Sessions in databases, killed before and after every record."""

from __future__ import annotations

import functools

import pytest

from ropewalk_testing import crash

pytest.importorskip("ropewalk_session_sql")
pytest.importorskip("sqlalchemy")

WHOLE = crash.Scenario(subagents=2, plugins=("subagents",))


def open_sqlite(folder):
    from ropewalk_session_sql import SQLLogStore

    return SQLLogStore(f"sqlite:///{folder / 'sessions.db'}")


def test_every_crash_is_survived():
    report = crash.run(open_sqlite, WHOLE, processes=2)

    report.check()
    assert report.points > 150
    assert report.kills + report.missed == report.points


def test_two_crashes_in_a_row_are_survived(sample):
    crash.run(open_sqlite, WHOLE, crashes=2, sample=sample, seed=1, processes=2).check()


def open_postgres(folder, url):
    from ropewalk_session_sql import SQLLogStore

    return SQLLogStore(url)


@pytest.mark.service
def test_crashes_of_clients_of_postgres_are_survived(postgres, sample):
    store = functools.partial(open_postgres, url=postgres.new_database())
    crash.run(store, WHOLE, sample=sample, seed=2, processes=2).check()
