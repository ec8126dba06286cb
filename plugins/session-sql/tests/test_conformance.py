"""The store passes the tests that all stores pass, on both databases."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest

from ropewalk_session_sql import SQLLogStore
from ropewalk_testing import StoreConformance

pytestmark = pytest.mark.long


class Ours(StoreConformance):
    processes_write = 200

    def reopened(self, store):
        return SQLLogStore(store.url)

    @pytest.fixture
    def store(self, url):
        made = SQLLogStore(url)
        made.url = url
        yield made
        made.close()


class TestSQLite(Ours):
    @pytest.fixture
    def url(self, sqlite_url, tmp_path):
        self.folder = tmp_path
        return sqlite_url

    def raw(self, store):
        return b"\n".join(path.read_bytes() for path in self.folder.iterdir() if path.is_file())

    @contextmanager
    def broken(self, store):
        """Somebody else keeps the file locked."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ropewalk_session_sql.sqlite._PAUSES", (0.0,))
            other = sqlite3.connect(self.folder / "sessions.sqlite3", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            yield
            other.close()


@pytest.mark.service
class TestPostgres(Ours):
    @pytest.fixture
    def url(self, postgres, postgres_url):
        self.postgres = postgres
        return postgres_url

    @contextmanager
    def broken(self, store):
        """An administrator has changed the table."""
        name = store.url.rpartition("/")[2]
        self.postgres.query("ALTER TABLE ropewalk_records RENAME COLUMN seq TO other", name=name)
        yield
        self.postgres.query("ALTER TABLE ropewalk_records RENAME COLUMN other TO seq", name=name)


def test_sqlite_is_as_new_as_the_statements_need():
    assert sqlite3.sqlite_version_info >= (3, 24)
