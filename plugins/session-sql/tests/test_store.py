"""What the store promises, on both databases."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
from asyncio.subprocess import PIPE

import pytest

from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey, SessionConflictError, SessionDamagedError, SessionException
from ropewalk_session_sql.sqlite import SQLiteDatabase

HOSTILE = [
    "../x", "a/b", "..", "CON", " x ", "end.", "a\nb", "a\0b", "x" * 9000, "\u00c5", "A\u030a", "Foo", "foo", "\ud83d",
    "\\ud83d", '"', "?", "%s",
]  # fmt: skip


def spoil(store, statement, *values):
    store._database.call(lambda transaction: transaction.execute(statement, *values))


async def test_what_was_appended_is_read_in_order_by_another_store(store, open_store, key, records):
    odd = Record("run_1", 2, "once", {"key": "k", "value": {"b": b"\x00\xff", "t": "\0 \u2028 😂", "$bytes": "x"}}, 2.0)
    first = await store.append(key, records(2), 0)
    second = await store.append(key, [odd], first)

    found = open_store().read(key)

    assert found.records == [*records(2), odd]
    assert found.position == second
    assert found.report == ()


async def test_there_is_no_log_before_the_first_record(store, key):
    assert store.read(key) is None
    assert store.logs() == []
    assert store.delete("order-17") is False


async def test_a_wrong_position_is_a_conflict_and_writes_nothing(store, key, records):
    first = await store.append(key, records(2), 0)
    second = await store.append(key, records(1, after=2), first)

    for stale in (0, first, second + 1, second - 1):
        with pytest.raises(SessionConflictError, match="order-17"):
            await store.append(key, records(1, run="run_other"), stale)

        with pytest.raises(SessionConflictError, match="order-17"):
            await store.replace(key, records(1, run="run_other"), stale)

    assert store.read(key).records == records(3)


async def test_the_same_records_again_are_no_error_and_not_there_twice(store, key, records):
    first = await store.append(key, records(2), 0)
    second = await store.append(key, records(2, after=2), first)

    assert await store.append(key, records(2, after=2), first) == second
    assert await store.append(key, records(4), 0) == second
    assert store.read(key).records == records(4)


async def test_records_of_which_the_first_were_stored_before_are_completed(store, key, records):
    first = await store.append(key, records(2), 0)
    await store.append(key, records(2, after=2), first)

    end = await store.append(key, records(5, after=2), first)

    assert store.read(key).records == records(7)
    assert store.read(key).position == end


async def test_a_position_of_before_a_replacement_is_a_conflict(store, key, records):
    first = await store.append(key, records(4), 0)
    second = await store.replace(key, records(1, run="run_short"), first)

    assert await store.replace(key, records(1, run="run_short"), first) == second
    for stale in (0, first):
        with pytest.raises(SessionConflictError):
            await store.append(key, records(1, after=4), stale)

    third = await store.append(key, records(1, after=1, run="run_short"), second)
    assert store.read(key).records == records(2, run="run_short")
    assert store.read(key).position == third


async def test_a_log_that_was_deleted_and_begun_again_is_another_one(store, key, records):
    first = await store.append(key, records(2), 0)
    assert store.delete("order-17") is True
    await store.append(key, records(2, run="run_new"), 0)

    with pytest.raises(SessionConflictError):
        await store.append(key, records(1, after=2), first)

    assert store.read(key).records == records(2, run="run_new")


async def test_a_commit_is_whole_or_not_there(store, key, records, monkeypatch):
    first = await store.append(key, records(1), 0)
    broken = Record("run_1", 1, "once", {"key": "k", "value": 1})
    monkeypatch.setattr(
        "ropewalk_session_sql.store._WRITE",
        "INSERT INTO ropewalk_records (log, seq, record) SELECT ?, ?, ? FROM no_such_table",
    )
    with pytest.raises(SessionException, match="no_such_table"):
        await store.append(key, [broken, broken], first)

    monkeypatch.undo()
    assert store.read(key).records == records(1)
    assert store.read(key).position == first
    await store.append(key, [broken], first)


async def test_a_leased_log_is_a_conflict_for_others_until_it_is_released(store, open_store, key):
    lease = await store.lease(key)
    for other in (store, open_store()):
        with pytest.raises(SessionConflictError, match="in use"):
            await other.lease(key)

    elsewhere = await store.lease(LogKey("order-18", "default"))
    await lease.release()
    await lease.release()
    again = await open_store().lease(key)
    await again.release()
    await elsewhere.release()


async def test_a_lease_that_nobody_has_any_more_is_free(store, open_store, key):
    """An agent whose run broke off was given up."""
    lease = await store.lease(key)
    del lease
    gc.collect()
    for _ in range(200):  # the server notices a closed connection within moments
        try:
            again = await open_store().lease(key)
            break
        except SessionConflictError:
            await asyncio.sleep(0.02)

    await again.release()


HOLDER = """
import asyncio, sys
from ropewalk.kits.sessions import LogKey
from ropewalk_session_sql import SQLLogStore


async def hold():
    lease = await SQLLogStore(sys.argv[1]).lease(LogKey(sys.argv[2], sys.argv[3]))
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    return lease


asyncio.run(hold())
"""


async def test_the_lease_of_a_process_that_was_killed_is_free(url, store, key):
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, url, key.session_id, key.agent_id, stdin=PIPE, stdout=PIPE
    )
    try:
        assert (await child.stdout.readline()).strip() == b"held"
        with pytest.raises(SessionConflictError):
            await store.lease(key)
    finally:
        child.kill()
        await child.communicate()

    for _ in range(200):  # the server notices a closed connection within moments
        try:
            lease = await store.lease(key)
            break
        except SessionConflictError:
            await asyncio.sleep(0.02)

    await lease.release()


async def test_a_session_in_use_is_not_deleted(store, open_store, key, records):
    lease = await store.lease(key)
    await store.append(key, records(1), 0)

    with pytest.raises(SessionConflictError, match="in use"):
        open_store().delete("order-17")

    await lease.release()
    assert open_store().delete("order-17") is True
    assert store.read(key) is None


async def test_no_two_ids_share_a_log(store, records):
    for number, name in enumerate(HOSTILE):
        await store.append(LogKey(name, name), records(1, run=f"run_{number}"), 0)
        await store.append(LogKey(name, "b"), records(1, run=f"run_{number}b"), 0)

    for number, name in enumerate(HOSTILE):
        assert store.read(LogKey(name, name)).records == records(1, run=f"run_{number}")
        assert [info.key for info in store.logs(name)] == sorted(
            [LogKey(name, name), LogKey(name, "b")], key=lambda each: each.agent_id
        )

    assert len(store.logs()) == 2 * len(HOSTILE)


async def test_the_list_tells_size_and_time(store, key, records):
    end = await store.append(key, records(3), 0)
    (big,) = store.logs()
    await store.replace(key, records(1), end)
    (small,) = store.logs("order-17")

    assert big.size == sum(len(record.to_json()) for record in records(3))
    assert small.size == len(records(1)[0].to_json())
    assert small.changed >= big.changed > 1.7e9


async def test_of_writers_at_once_one_wins_and_the_others_get_a_conflict(store, open_store, key, records):
    start = await store.append(key, records(1), 0)
    outcomes = []

    def write(number):
        try:
            outcomes.append(asyncio.run(open_store().append(key, records(3, run=f"run_w{number}"), start)))
        except SessionConflictError:
            outcomes.append(None)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(60)

    assert sum(outcome is not None for outcome in outcomes) == 1
    assert len(outcomes) == 8
    assert len({record.run for record in store.read(key).records[1:]}) == 1
    assert len(store.read(key).records) == 4


async def test_a_newer_versions_record_is_refused_by_name(store, key, records):
    await store.append(key, records(1), 0)
    newer = json.dumps({**records(1)[0].to_dict(), "v": 99})
    spoil(store, "UPDATE ropewalk_records SET record = ?", newer)

    with pytest.raises(SessionException, match=r"version 99.*upgrade") as caught:
        store.read(key)

    assert not isinstance(caught.value, SessionDamagedError)


@pytest.mark.parametrize("text", ['{"run": ', "", "[]", '{"run": "r"}', "null,null"])
async def test_a_damaged_row_is_named_and_left_alone(store, key, records, text):
    await store.append(key, records(3), 0)
    spoil(store, "UPDATE ropewalk_records SET record = ? WHERE seq = 1", text)

    with pytest.raises(SessionDamagedError, match=r"order-17.*record"):
        store.read(key)

    assert store._database.call(lambda t: t.rows("SELECT record FROM ropewalk_records WHERE seq = 1"))[0][0] == text


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_missing_row_is_damage(store, key, records, number):
    await store.append(key, records(3), 0)
    spoil(store, "DELETE FROM ropewalk_records WHERE seq = ?", number)

    with pytest.raises(SessionDamagedError, match="missing"):
        store.read(key)


async def test_the_tables_of_a_newer_version_are_refused(store, open_store, key, records):
    await store.append(key, records(1), 0)
    spoil(store, "UPDATE ropewalk_schema SET version = 99")

    with pytest.raises(SessionException, match=r"version 99.*upgrade"):
        open_store().read(key)


async def test_older_tables_are_brought_up_to_date(store, open_store, key, records, monkeypatch):
    await store.append(key, records(1), 0)
    from ropewalk_session_sql import schema

    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ("ALTER TABLE ropewalk_logs ADD COLUMN note TEXT",)))
    newer = open_store()

    assert newer.read(key).records == records(1)
    assert newer._database.call(lambda t: t.rows("SELECT note FROM ropewalk_logs"))[0][0] is None
    assert newer._database.call(lambda t: t.rows("SELECT version FROM ropewalk_schema"))[0][0] == 2


async def test_stores_that_open_at_once_make_the_tables_once(open_store, key, records):
    failures = []

    def touch(number):
        try:
            asyncio.run(open_store().append(LogKey("s", str(number)), records(1), 0))
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=touch, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(60)

    assert failures == []
    assert len(open_store().logs()) == 6


async def test_a_store_can_be_used_after_it_was_closed(store, key, records):
    end = await store.append(key, records(1), 0)
    store.close()

    await store.append(key, records(1, after=1), end)

    assert store.read(key).records == records(2)


def write_on(store, key, position):
    after = [Record("run_child", 0, "once", {"key": "k", "value": 1})]
    asyncio.run(store.append(key, after, position))


async def test_a_store_can_be_used_after_a_fork(store, open_store, key, records):
    """A child forked from a warmed process; it leaves without cleaning up, as a server's worker may."""
    end = await store.append(key, records(1), 0)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            thread = threading.Thread(target=write_on, args=(store, key, end))
            thread.start()
            thread.join(30)
            code = 0
        finally:
            os._exit(code)

    assert os.waitpid(pid, 0)[1] == 0  # noqa: ASYNC222 - nothing else runs in this loop
    assert [record.run for record in store.read(key).records] == ["run_1", "run_child"]
    await store.append(key, records(1, after=1), store.read(key).position)
    assert len(open_store().read(key).records) == 3


def test_a_connection_waits_for_nothing_of_sqlite():
    """What `write` relies on: SQLite itself never sleeps in the event loop's thread."""
    from sqlalchemy.engine import make_url

    database = SQLiteDatabase(make_url("sqlite://"), "process")
    assert database.call(lambda t: t.rows("PRAGMA busy_timeout"))[0][0] == 0
    database.close()
