from __future__ import annotations

import errno
import os
import resource
import threading

import pytest

from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_file import FileLogStore, files, writing
from ropewalk_session_file.lines import commit, lines, place_of

DURABILITIES = ["process", "power"]


@pytest.fixture(params=DURABILITIES)
def each_store(request, tmp_path):
    return FileLogStore(tmp_path / "sessions", durability=request.param)


async def test_who_writes_at_another_place_gets_a_conflict(each_store, key, notes, log):
    end = await each_store.append(key, notes(2), 0)
    other = FileLogStore(each_store.root)
    await other.append(key, notes(1, 2, run="x"), end)
    before = log.read_bytes()

    for position in (0, end, end - 1):
        with pytest.raises(SessionConflictError, match="written by another agent"):
            await each_store.append(key, notes(2, 2), position)

    with pytest.raises(SessionConflictError):
        await each_store.replace(key, notes(1), end)

    assert log.read_bytes() == before


@pytest.mark.parametrize("start", [0, 2])
async def test_records_that_are_there_already_are_not_added_again(each_store, key, notes, log, start):
    position = await each_store.append(key, notes(start), 0) if start else 0
    end = await each_store.append(key, notes(2, start), position)
    data = log.read_bytes()

    assert await each_store.append(key, notes(2, start), position) == end
    assert log.read_bytes() == data

    longer = await each_store.append(key, notes(4, start), position)
    assert longer > end
    assert each_store.read(key).records == notes(start + 4)


async def test_a_log_that_was_deleted_is_not_made_anew_in_silence(each_store, key, notes, log):
    lease = await each_store.lease(key)
    end = await each_store.append(key, notes(1), 0)
    log.unlink()
    for _ in range(2):
        with pytest.raises(SessionConflictError, match="was deleted or replaced"):
            await each_store.append(key, notes(1, 1), end)

        lease.release()

    assert not log.exists()


async def test_a_log_that_was_replaced_while_it_was_open_is_left_alone(store, key, notes, log):
    lease = await store.lease(key)
    end = await store.append(key, notes(1), 0)
    beside = log.with_name("copy")
    beside.write_bytes(log.read_bytes())
    beside.replace(log)

    with pytest.raises(SessionConflictError, match="was deleted or replaced"):
        await store.append(key, notes(1, 1), end)

    lease.release()
    assert len(log.read_bytes()) == place_of(end)[1]


async def test_a_torn_end_is_set_aside_and_said(store, key, notes, log, caplog):
    end = await store.append(key, notes(2), 0)
    whole = log.read_bytes()
    torn = lines(commit(notes(3, 2, text="lost")), len(whole))[:-40]
    log.write_bytes(whole + torn)
    found = store.read(key)

    assert (found.records, found.position) == (notes(2), end)
    assert f"{log}: 2 records, {len(whole)} bytes, are whole; the {len(torn)} bytes after them" in found.report[0]
    assert log.read_bytes() == whole + torn, "reading changes nothing"

    await store.append(key, notes(1, 2), end)
    assert store.read(key).records == notes(3)
    assert store.read(key).report == ()
    assert (log.parent / "set-aside-1.jsonl").read_bytes() == torn
    assert "set-aside-1.jsonl" in caplog.text


async def test_whatever_is_set_aside_gets_a_file_of_its_own(store, key, notes, log):
    end = await store.append(key, notes(1), 0)
    for number in range(12):
        with log.open("ab") as file:
            file.write(b"bad %d" % number)

        end = await store.append(key, notes(1, number + 1), end)

    assert {path.name: path.read_bytes() for path in log.parent.glob("set-aside-*")} == {
        f"set-aside-{number + 1}.jsonl": b"bad %d" % number for number in range(12)
    }
    assert store.read(key).records == notes(13)


async def test_what_follows_damage_in_the_middle_is_set_aside_whole(store, key, notes, log):
    ends = [0]
    for number in range(4):
        ends.append(await store.append(key, notes(1, number), ends[-1]))

    data, bad = bytearray(log.read_bytes()), place_of(ends[2])[1]
    data[bad + 40] ^= 4
    log.write_bytes(data)
    found = store.read(key)
    assert (found.records, found.position) == (notes(2), ends[2])

    await store.append(key, notes(1, 2, text="again"), ends[2])
    assert (log.parent / "set-aside-1.jsonl").read_bytes() == bytes(data[bad:])
    assert store.read(key).records == [*notes(2), *notes(1, 2, text="again")]


async def test_a_full_disk_leaves_the_log_as_it_was(each_store, key, notes, log):
    end = await each_store.append(key, notes(2), 0)
    before = log.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(SessionException, match=r"log.jsonl cannot be written .*: compact the session") as raised:
            await each_store.append(key, notes(20, 2), end)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not isinstance(raised.value, SessionConflictError)
    assert log.read_bytes() == before
    await each_store.append(key, notes(20, 2), end)
    assert each_store.read(key).records == notes(22)


@pytest.mark.parametrize(("code", "advice"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "choose a storage_dir")])
async def test_each_trouble_says_what_to_do(store, key, notes, monkeypatch, log, code, advice):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "write", fail)
    with pytest.raises(SessionException, match=advice):
        await store.append(key, notes(1), 0)

    monkeypatch.undo()
    assert not log.exists(), "a log that was never written is not there"
    await store.append(key, notes(1), 0)
    assert store.read(key).records == notes(1)


async def test_a_folder_that_cannot_be_written_to_is_an_error(store, key, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(SessionException, match=r"cannot be locked .Permission denied.: give this user the right"):
        await store.lease(key)


async def test_commits_wait_for_the_disk_when_they_have_to_survive_a_power_cut(tmp_path, key, notes, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(threading.current_thread()), real(file)))
    quick, safe = FileLogStore(tmp_path / "a"), FileLogStore(tmp_path / "b", durability="power")
    end = await quick.append(key, notes(1), 0)
    await quick.append(key, notes(1, 1), end)
    assert synced == []

    end = await safe.append(key, notes(1), 0)
    assert len(synced) == 4, "the file, and the three folders that were made"
    await safe.append(key, notes(1, 1), end)
    assert len(synced) == 5
    assert threading.main_thread() not in synced


async def test_a_log_can_be_read_at_every_instant_while_it_is_replaced(store, key, notes, monkeypatch):
    end = await store.append(key, notes(5), 0)
    seen, looking = [], []

    def look():
        if not looking:
            looking.append(True)
            seen.append(len(FileLogStore(store.root).read(key).records))
            looking.clear()

    for name in ("open", "write", "fsync", "close"):
        real = getattr(os, name)

        def watched(*arguments, real=real, **options):
            look()
            result = real(*arguments, **options)
            look()
            return result

        monkeypatch.setattr(files.os, name, watched)

    end = await store.replace(key, notes(3), end)
    monkeypatch.undo()
    assert seen[0] == 5
    assert seen[-1] == 3
    assert set(seen) == {5, 3}
    assert store.read(key).position == end
    assert await store.append(key, notes(1, 3), end) > end


async def test_a_log_that_was_replaced_by_one_of_the_same_length_is_another_one(store, key, notes, log):
    end = await store.append(key, notes(2), 0)
    other = FileLogStore(store.root)
    newer = await other.replace(key, notes(2), end)
    assert log.stat().st_size == len(log.read_bytes())

    for write in (store.append, store.replace):
        with pytest.raises(SessionConflictError):
            await write(key, notes(1, 2), end)

    other.delete("s")
    await other.append(key, notes(2), 0)
    for position in (end, newer):
        with pytest.raises(SessionConflictError):
            await store.append(key, notes(1, 2), position)

    assert store.read(key).records == notes(2)


async def test_a_replacement_that_fails_leaves_the_log_and_nothing_beside_it(store, key, notes, log, monkeypatch):
    end = await store.append(key, notes(5), 0)
    before = log.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(SessionException, match="free some space"):
        await store.replace(key, notes(1), end)

    assert log.read_bytes() == before
    assert sorted(path.name for path in log.parent.iterdir()) == ["lock", "log.jsonl"]


async def test_replacing_keeps_commits_whole_and_fields_that_are_not_known(store, key, notes, log):
    body = notes(1)[0].to_json()[:-1] + ',"later":1}'
    end = await store.append(key, notes(1), 0)
    first = log.read_bytes().splitlines(keepends=True)[0]
    log.write_bytes(first + lines([(body, 0)], len(first)))
    end = await store.append(key, notes(3, 1), store.read(key).position)
    end = await store.replace(key, [*notes(4), *notes(2, 4)], end)

    assert b'"later":1' in log.read_bytes()
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    assert store.read(key).records == notes(4)
    log.write_bytes(data[: data.index(b"note 3")])
    assert store.read(key).records == notes(1)


async def test_a_release_during_a_write_waits_for_its_end(tmp_path, key, notes, monkeypatch):
    store = FileLogStore(tmp_path / "s", durability="power")
    lease = await store.lease(key)
    real = os.fsync

    def release_first(file):
        monkeypatch.setattr(os, "fsync", real)
        lease.release()
        real(file)

    monkeypatch.setattr(os, "fsync", release_first)
    await store.append(key, notes(1), 0)
    assert store.read(key).records == notes(1)
    (await FileLogStore(store.root).lease(key)).release()


async def test_a_write_that_begins_after_its_lease_was_given_up_writes_nothing(each_store, key, notes, log):
    held = await each_store.lease(key)
    end = await each_store.append(key, notes(2), 0)
    before = log.read_bytes()
    held.release()

    for late in (lambda: writing.append(held, notes(1, 2), end, sync=True), lambda: writing.replace(held, [], end)):
        with pytest.raises(SessionConflictError, match="given up"):
            late()

    assert log.read_bytes() == before
    (await each_store.lease(key)).release()
