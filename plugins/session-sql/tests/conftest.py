"""A PostgreSQL of our own, agents, records."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from ropewalk_session_sql import SQLLogStore
from ropewalk_testing.session_fixtures import key, make_agent, records  # noqa: F401 - fixtures

SERVER_FOLDERS = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/local/bin")]


class Postgres:
    """A server on loopback, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "data"
        found = shutil.which("initdb")
        places = [Path(found).parent] if found else []
        self.programs = next((at for at in [*places, *SERVER_FOLDERS] if (at / "initdb").exists()), None)
        if self.programs is None:
            pytest.fail("no PostgreSQL server programs: apt-get install postgresql")

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

        self.databases = 0
        self.spare = []

    def run(self, program, *arguments):
        command = [str(self.programs / program), *arguments]
        if os.name == "posix" and os.geteuid() == 0:  # the server refuses to run as root
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]

        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", timeout=60)

    def start(self):
        if not self.data.exists():
            self.run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")

        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off -c max_connections=50"
        self.run("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self):
        self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def url(self, name="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def query(self, statement, *values, name="postgres"):
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def new_database(self):
        if self.spare:
            return self.url(self.spare.pop())

        self.databases += 1
        name = f"test_{self.databases}"
        self.query(f"CREATE DATABASE {name}")
        return self.url(name)

    def take_back(self, url):
        """Empties a database for the next test: to make one takes a quarter of a second, and 300 files."""
        name = url.rpartition("/")[2]
        self.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)
        self.query("DROP SCHEMA public CASCADE", name=name)
        self.query("CREATE SCHEMA public", name=name)
        self.spare.append(name)


@pytest.fixture(scope="module")
def postgres():
    import tempfile

    # not tmp_path: the server's user must be able to go through the folders above
    with tempfile.TemporaryDirectory(prefix="rw-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        place.chmod(0o755)
        inner = place / "server"
        inner.mkdir()
        if os.geteuid() == 0:
            os.chown(inner, 65534, 65534)

        server = Postgres(inner)
        server.start()
        yield server
        server.stop()


@pytest.fixture
def postgres_url(postgres):
    """An empty database."""
    url = postgres.new_database()
    yield url
    postgres.take_back(url)


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path}/sessions.sqlite3"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def url(request, sqlite_url):
    """A new database; tests that use it run once for each kind."""
    return sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def open_store(url):
    """Opens one more store on the database: `open_store()`."""
    opened = []

    def make(**options):
        opened.append(SQLLogStore(url, **options))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()
