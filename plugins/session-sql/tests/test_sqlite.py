"""What is particular to SQLite: the file, its neighbours, other processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from ropewalk.kits.sessions import SessionConflictError, SessionDamagedError, SessionException
from ropewalk_session_sql import SQLLogStore, SQLSessionManager
from ropewalk_session_sql import sqlite as sqlite_module


@pytest.fixture
def url(sqlite_url):
    return sqlite_url


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sessions.sqlite3"


async def test_looking_for_a_session_makes_no_file(store, key, file):
    assert store.read(key) is None
    assert store.logs() == []
    assert store.delete("order-17") is False
    assert not file.exists()


async def test_the_file_is_for_its_owner_alone(tmp_path, key, records):
    store = SQLLogStore(f"sqlite:///{tmp_path}/deep/er/sessions.sqlite3")
    lease = await store.lease(key)
    await store.append(key, records(1), 0)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep" / "er").iterdir()}
    await lease.release()
    store.close()

    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "deep" / "er").stat().st_mode) == 0o700


def test_the_default_is_a_file_in_the_home_folder(tmp_path, monkeypatch, make_agent):
    monkeypatch.setenv("HOME", str(tmp_path))
    manager = SQLSessionManager("order-17")
    make_agent(manager, ["Hello."])("Hi.")
    manager.close()

    assert (tmp_path / ".ropewalk" / "sessions" / "sessions.sqlite3").is_file()


async def test_a_file_that_was_removed_is_not_silently_begun_again(store, key, records, file):
    end = await store.append(key, records(1), 0)
    for path in file.parent.iterdir():
        path.unlink()

    with pytest.raises(SessionException, match="removed or replaced"):
        await store.append(key, records(1, after=1), end)

    with pytest.raises(SessionConflictError):
        await store.append(key, records(1, after=1), end)


async def test_a_file_that_is_no_database_is_damage_and_stays_as_it_is(store, key, records, file):
    file.write_bytes(b"no database at all, but long enough to look at" * 100)
    before = file.read_bytes()

    with pytest.raises(SessionDamagedError, match=r"sessions\.sqlite3"):
        store.read(key)

    with pytest.raises(SessionDamagedError, match=r"sessions\.sqlite3"):
        await store.append(key, records(1), 0)

    assert file.read_bytes() == before


async def test_a_folder_that_cannot_be_made_is_a_session_error(tmp_path, key, records):
    (tmp_path / "file").write_text("in the way")
    store = SQLLogStore(f"sqlite:///{tmp_path}/file/sessions.sqlite3")

    with pytest.raises(SessionException, match="cannot be made"):
        await store.lease(key)

    with pytest.raises(SessionException, match="cannot be made"):
        await store.append(key, records(1), 0)


async def test_a_full_disk_is_a_session_error_and_nothing_is_stored(store, key, records):
    end = await store.append(key, records(1), 0)
    store._database.call(lambda t: t.rows("PRAGMA max_page_count = 12"))

    with pytest.raises(SessionException, match="full"):
        await store.append(key, records(1, after=1, text="x" * 200_000), end)

    assert store.read(key).records == records(1)
    await store.append(key, records(1, after=1), end)  # a new connection has no such bound


async def test_a_commit_waits_while_another_process_writes_and_the_loop_goes_on(store, key, records, file):
    end = await store.append(key, records(1), 0)
    other = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    turns = []

    async def let_go():
        for turn in range(5):
            turns.append(turn)
            await asyncio.sleep(0)

        other.execute("ROLLBACK")

    written, _ = await asyncio.gather(store.append(key, records(1, after=1), end), let_go())
    other.close()

    assert turns == [0, 1, 2, 3, 4]
    assert store.read(key).position == written


async def test_a_file_that_stays_locked_is_a_session_error(store, key, records, file, monkeypatch):
    end = await store.append(key, records(1), 0)
    monkeypatch.setattr(sqlite_module, "_PAUSES", (0.0, 0.0))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(SessionException, match="locked by other processes"):
        await store.append(key, records(1, after=1), end)

    other.close()
    assert store.read(key).records == records(1)


async def test_what_was_replaced_or_deleted_is_in_no_file(store, open_store, key, records, file):
    end = await store.append(key, records(40, text="canary-7491 " * 50), 0)
    open_store().read(key)
    assert any(b"canary-7491" in path.read_bytes() for path in file.parent.iterdir())

    end = await store.replace(key, records(40, text=""), end)
    left = {path.name for path in file.parent.iterdir() if b"canary-7491" in path.read_bytes()}
    assert left == set()

    await store.append(key, records(3, after=40, text="canary-7491"), end)
    store.delete("order-17")
    left = {path.name for path in file.parent.iterdir() if b"canary-7491" in path.read_bytes()}
    assert left == set()


async def test_power_durability_syncs_in_a_thread(open_store, key, records, monkeypatch):
    threads = []
    store = open_store(durability="power")
    inner = store._append
    monkeypatch.setattr(store, "_append", lambda *given: (threads.append(threading.current_thread()), inner(*given))[1])
    await store.append(key, records(1), 0)

    assert threads != [threading.current_thread()]
    assert store._database.call(lambda t: t.rows("PRAGMA synchronous"))[0][0] == 2


async def test_a_database_in_memory_lives_as_long_as_its_store(key, records):
    store = SQLLogStore("sqlite://")
    lease = await store.lease(key)
    with pytest.raises(SessionConflictError):
        await store.lease(key)

    await store.append(key, records(2), 0)
    await lease.release()

    assert store.read(key).records == records(2)
    assert SQLLogStore("sqlite://").read(key) is None
    store.close()


def handles():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


async def test_no_handle_is_left_open_after_runs(sqlite_url, make_agent):
    manager = SQLSessionManager("order-17", sqlite_url)
    agent = make_agent(manager, ["a", "b", "c"])
    await agent.invoke_async("Hi.")
    before = handles()
    await agent.invoke_async("Hi.")
    await agent.invoke_async("Hi.")

    assert handles() == before
    manager.close()


async def test_the_log_of_a_commit_costs_two_statements_and_no_reading(store, key, records):
    """Cost per commit does not grow with the log: it is counted in steps of SQLite's virtual machine."""

    async def steps(position, after):
        counted = []
        driver = store._database._open.connection.connection.driver_connection
        driver.set_progress_handler(lambda: counted.append(1) and 0, 10)
        end = await store.append(key, records(3, after=after), position)
        driver.set_progress_handler(None, 0)
        return len(counted), end

    end = await store.append(key, records(3), 0)
    early, end = await steps(end, 3)
    end = await store.append(key, records(3000, after=6), end)
    late, _ = await steps(end, 3006)

    assert late <= early + 2


async def test_two_agents_of_one_file_and_process_write_side_by_side(sqlite_url, make_agent):
    managers = [SQLSessionManager(f"s{number}", sqlite_url) for number in range(4)]
    agents = [make_agent(manager, [f"{turn}" for turn in range(5)]) for manager in managers]

    async def talk(agent):
        for _ in range(5):
            await agent.invoke_async("Hi.")

    await asyncio.gather(*map(talk, agents))
    for manager, agent in zip(managers, agents, strict=True):
        again = make_agent(SQLSessionManager(manager.session_id, sqlite_url), [])
        assert again.messages == agent.messages
        again.session_manager.close()
        manager.close()


def test_locks_of_other_logs_survive_the_release_of_one(tmp_path):
    """Closing any handle of a file drops a process's POSIX locks on all of it."""
    from ropewalk_session_sql import locks

    name = str(tmp_path / "locks")
    assert locks.take(name, 1, shared_file=True)
    assert locks.take(name, 2, shared_file=True)
    locks.free(name, 1)
    pid = os.fork()
    if pid == 0:
        os._exit(
            0 if (locks.take(name, 1, shared_file=True), locks.take(name, 2, shared_file=True)) == (True, False) else 1
        )

    assert os.waitpid(pid, 0)[1] == 0
    locks.free(name, 2)
    assert name not in locks._files


async def test_opening_one_more_store_keeps_the_locks_of_the_first(store, open_store, key, records, file):
    """Without them another process would take itself for the last one, and remove the write-ahead log."""
    import fcntl

    await store.append(key, records(1), 0)
    other = open_store()
    other.read(key)
    other.close()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            fcntl.lockf(os.open(file, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
        except BlockingIOError:
            code = 0  # SQLite's shared lock is there
        finally:
            os._exit(code)

    assert os.waitpid(pid, 0)[1] == 0  # noqa: ASYNC222 - nothing else runs in this loop


async def test_traces_that_cannot_be_erased_are_told_and_the_replacement_counts(
    store, open_store, key, records, monkeypatch, caplog
):
    from sqlalchemy.exc import OperationalError

    end = await store.append(key, records(2), 0)

    def refuse(*_):
        raise OperationalError("PRAGMA", None, sqlite3.OperationalError("disk I/O error"))

    monkeypatch.setattr("ropewalk_session_sql.sqlite._pragma", refuse)
    end = await store.replace(key, records(1), end)
    monkeypatch.undo()

    assert "still in the write-ahead log: " in caplog.text
    assert open_store().read(key).position == end


async def test_a_relative_file_is_the_same_one_after_a_change_of_folder(key, records, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SQLLogStore("sqlite:///sessions.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.append(key, records(2), 0)
    store.close()

    other = SQLLogStore(f"sqlite:///{tmp_path}/sessions.db")
    assert other.read(key).records == records(2)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    other.close()
