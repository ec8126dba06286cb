"""What looks like another writer and is none, and what other writers do at the same time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk.kits.sessions import LogKey, SessionConflictError, SessionException
from ropewalk_session_s3 import leases


def keys(store):
    return [listed.key for listed in store._bucket.listed("")]


@pytest.fixture
def answered(store, monkeypatch):
    """Has requests answered by errors first: `answered("put_object", 409, "ConditionalRequestConflict", times)`."""

    def answer(operation, status, code, times):
        from botocore.exceptions import ClientError

        client = store._bucket._client()
        inner, left = getattr(client, operation), [None] * times

        def refuse(**given):
            if not left:
                return inner(**given)

            left.pop()
            response = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(response, operation)

        monkeypatch.setattr(client, operation, refuse)
        monkeypatch.setattr("ropewalk_session_s3.bucket._PAUSES", (0.0,) * 6)
        return left

    return answer


async def test_a_write_that_meets_another_under_way_is_asked_again(store, key, records, answered):
    lease = await store.lease(key)
    left = answered("put_object", 409, "ConditionalRequestConflict", 5)
    await store.append(key, records(2), 0)
    await lease.release()

    assert not left
    assert store.read(key).records == records(2)


async def test_writes_that_are_under_way_all_the_time_are_nobody_elses_log(store, key, records, answered):
    lease = await store.lease(key)
    answered("put_object", 409, "ConditionalRequestConflict", 12)
    with pytest.raises(SessionException, match="under way all the time") as failed:
        await store.append(key, records(2), 0)

    assert not isinstance(failed.value, SessionConflictError)
    leases.heartbeat.beat()  # which meets them too, and does not believe that the lease is gone
    await store.append(key, records(2), 0)
    await lease.release()
    assert store.read(key).records == records(2)


async def test_throttling_that_does_not_end_is_no_conflict(store, key, records, answered):
    lease = await store.lease(key)
    answered("put_object", 503, "SlowDown", 1)
    with pytest.raises(SessionException, match="SlowDown") as failed:
        await store.append(key, records(2), 0)

    assert not isinstance(failed.value, SessionConflictError)
    await store.append(key, records(2), 0)
    await lease.release()


async def test_a_head_that_is_gone_already_is_deleted(store, key, records, answered):
    await store.append(key, records(2), 0)
    answered("delete_object", 404, "NoSuchKey", 1)
    store.delete("order-17")

    assert not [name for name in keys(store) if not name.endswith("head.json")]


async def test_what_a_run_wrote_while_the_session_was_listed_is_deleted_too(
    store, open_store, key, records, monkeypatch
):
    end = await store.append(key, records(2), 0)
    inner, other = store._bucket.get_all, open_store()

    def run_meanwhile(names):
        asyncio.run(run())
        return inner(names)

    async def run():
        lease = await other.lease(key)
        await other.append(key, records(2, after=2), end)
        await lease.release()

    monkeypatch.setattr(store._bucket, "get_all", run_meanwhile)
    assert await asyncio.to_thread(store.delete, "order-17")
    assert keys(store) == []


async def test_a_commit_whose_answer_was_lost_is_not_written_twice(store, key, records, monkeypatch):
    inner = store._bucket.put

    def lose(*given, **named):
        inner(*given, **named)
        raise SessionException("no answer")

    lease = await store.lease(key)
    monkeypatch.setattr(store._bucket, "put", lose)
    with pytest.raises(SessionException, match="no answer"):
        await store.append(key, records(2), 0)

    monkeypatch.undo()
    end = await store.append(key, records(3), 0)
    await lease.release()
    assert store.read(key).records == records(3)
    assert store.read(key).position == end


async def test_a_lease_whose_store_does_not_answer_costs_no_other_its_renewal(store, open_store, key, monkeypatch):
    monkeypatch.setattr(leases, "_PATIENCE", 0.2)
    silent, answer = open_store(), threading.Event()
    held = [await silent.lease(LogKey("silent", str(number))) for number in range(3)]
    lease = await store.lease(key)
    monkeypatch.setattr(silent._bucket, "put", lambda *_, **__: answer.wait(30) and "etag")
    before = lease._sent
    leases.heartbeat.beat()
    leases.heartbeat.beat()  # those of the silent store are still under way

    assert lease._sent > before
    answer.set()
    monkeypatch.undo()
    for each in held:
        each._lost = True  # what their store was told is not there

    await lease.release()
