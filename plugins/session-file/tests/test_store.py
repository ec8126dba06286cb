from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ropewalk.kits.sessions import (
    LogKey,
    LogStore,
    SessionConflictError,
    SessionDamagedError,
    SessionException,
)
from ropewalk_session_file import FileLogStore
from ropewalk_session_file import store as store_module


def test_it_is_a_store(store):
    assert isinstance(store, LogStore)


def test_the_default_is_a_folder_in_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert FileLogStore().root == tmp_path / ".ropewalk" / "sessions"
    assert not (tmp_path / ".ropewalk").exists(), "nothing is made before it is needed"


def test_a_relative_folder_stays_where_it_was_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    store = FileLogStore("here")
    monkeypatch.chdir("/")
    assert store.root == tmp_path / "here"


def test_an_unknown_durability_is_refused(tmp_path):
    with pytest.raises(ValueError, match="give 'process' or 'power'"):
        FileLogStore(tmp_path, durability="always")


async def test_what_is_appended_is_read(store, key, notes):
    end = await store.append(key, notes(2), 0)
    end = await store.append(key, notes(3, 2), end)
    found = store.read(key)

    assert found.records == notes(5)
    assert (found.position, found.report) == (end, ())
    assert await store.append(key, [], end) == end


def test_a_log_that_is_not_there_is_none(store, key):
    assert store.read(key) is None
    assert store.logs() == []
    assert store.delete("s") is False


async def test_folders_and_files_are_for_this_user_alone(store, key, notes, log):
    before = os.umask(0)
    try:
        await store.append(key, notes(1), 0)
    finally:
        os.umask(before)

    for path in (store.root, log.parent.parent, log.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700

    for path in log.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_stray_files_are_ignored_and_named(store, key, notes, log):
    await store.append(key, notes(2), 0)
    (log.parent / "log (1).jsonl").write_text("{}")
    (log.parent / ".log.jsonl.swp").write_bytes(b"\x00")
    (log.parent / "folder").mkdir(mode=0)
    (log.parent.parent / "stray").write_text("x")
    found = store.read(key)

    assert found.records == notes(2)
    assert [name for name in ("log (1).jsonl", ".log.jsonl.swp", "folder") for line in found.report if name in line]
    assert len(found.report) == 3
    assert [info.key for info in store.logs()] == [key]


async def test_an_empty_file_begins_anew_and_is_reported(store, key, notes, log):
    await store.append(key, notes(2), 0)
    log.write_bytes(b"")
    found = store.read(key)

    assert (found.records, found.position) == ([], 0)
    assert f"{log} is empty" in found.report[0]
    await store.append(key, notes(1), 0)
    assert store.read(key).records == notes(1)


async def test_a_damaged_first_line_is_an_error_that_names_the_file(store, key, notes, log):
    await store.append(key, notes(2), 0)
    data = bytearray(log.read_bytes())
    data[30] ^= 1
    log.write_bytes(data)

    with pytest.raises(SessionDamagedError) as raised:
        store.read(key)

    assert str(log) in str(raised.value)
    assert log.read_bytes() == bytes(data)
    assert store.logs() == []


async def test_a_log_in_the_wrong_folder_is_refused(store, key, notes, log):
    await store.append(key, notes(1), 0)
    other = log.parent.parent / "b"
    log.parent.rename(other)

    with pytest.raises(SessionException, match="is the log of session 's', agent 'a', and not of 's', 'b'"):
        store.read(LogKey("s", "b"))

    assert store.logs() == []


async def test_logs_are_listed_with_their_sizes(store, notes):
    keys = [LogKey("Ä", "x/y"), LogKey("s", "a"), LogKey("s", "b")]
    for each in reversed(keys):
        await store.append(each, notes(2), 0)

    everything = store.logs()
    assert [info.key for info in everything] == sorted(keys, key=lambda each: each.session_id)
    assert [info.key for info in store.logs("s")] == keys[1:]
    for info in everything:
        assert info.size > 200
        assert info.changed > 1_700_000_000


async def test_deleting_a_session_removes_all_of_it(store, notes):
    for each in (LogKey("s", "a"), LogKey("s", "b"), LogKey("t", "a")):
        await store.append(each, notes(1), 0)

    assert store.delete("s") is True
    assert [info.key for info in store.logs()] == [LogKey("t", "a")]
    assert [path.name for path in store.root.iterdir()] == ["t"]
    assert store.delete("s") is False


async def test_a_session_in_use_is_not_deleted(store, key, notes):
    await store.append(key, notes(1), 0)
    lease = await FileLogStore(store.root).lease(key)
    with pytest.raises(SessionConflictError, match="session 's' is in use"):
        store.delete("s")

    lease.release()
    assert store.delete("s") is True


async def test_two_stores_of_one_folder_share_its_leases(store, key):
    lease = await store.lease(key)
    other = FileLogStore(store.root)
    with pytest.raises(SessionConflictError, match=r"session 's', agent 'a'.*in use"):
        await other.lease(key)

    with pytest.raises(SessionConflictError):
        await store.lease(key)

    lease.release()
    (await other.lease(key)).release()


async def test_a_pipe_in_the_place_of_the_log_is_refused_and_not_waited_for(store, key, log):
    (await store.lease(key)).release()
    os.mkfifo(log)
    with pytest.raises(SessionException, match="no regular file"):
        store.read(key)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
async def test_leases_leave_no_files_open(store, key, notes):
    def open_files():
        return len(list(Path("/proc/self/fd").iterdir()))

    end, before = 0, open_files()
    for number in range(5):
        lease = await store.lease(key)
        end = await store.append(key, notes(1, number), end)
        lease.release()

    end = await store.replace(key, notes(3), end)
    assert store.read(key).position == end
    assert open_files() == before


async def test_two_that_delete_at_once_do_not_disturb_each_other(store, key, notes, monkeypatch):
    await store.append(key, notes(2), 0)
    inner, seen = store_module.shutil.rmtree, []

    def rmtree(folder):
        seen.append(folder)
        if len(seen) == 1:  # the other one removes what this one has just listed
            next(folder.rglob("log.jsonl")).unlink()
            raise FileNotFoundError(2, "gone")

        inner(folder)

    monkeypatch.setattr(store_module.shutil, "rmtree", rmtree)
    assert store.delete(key.session_id)
    assert list(store.root.iterdir()) == []
