"""What is particular to S3: leases that expire, generations, requests, damage."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

from ropewalk.kits.sessions import LogKey, SessionConflictError, SessionDamagedError, SessionException
from ropewalk_session_s3 import S3LogStore, leases
from ropewalk_session_s3.head import Head
from ropewalk_session_s3.segments import Segment, number_name, number_of

HEAD = "order-17/default/head.json"


def keys(store):
    return [listed.key for listed in store._bucket.listed("")]


def rewrite(store, name, change):
    """Changes an object behind the store's back."""
    found = store._bucket.get(name)
    assert store._bucket.put(name, change(found.body), etag=found.etag)


def expire(body):
    """A head whose holder is on another machine, and whose time is over."""
    value = json.loads(body)
    value["lease"] = {"host": "elsewhere", "pid": 1, "began": "1", "token": "x", "seconds": -1.0}
    return json.dumps(value).encode()


def hold(body):
    return expire(body).replace(b"-1.0", b"3600.0")


@pytest.fixture
def clock(monkeypatch):
    """The clock by which a holder believes in its lease: `clock.seconds`."""

    class Clock:
        seconds = 1000.0

    monkeypatch.setattr(leases, "_elapsed", lambda: Clock.seconds)
    return Clock


# -- keys ------------------------------------------------------------------------------------------------------------


async def test_a_commit_is_one_object_whose_name_is_its_first_records_number(store, key, records):
    end = await store.append(key, records(2), 0)
    await store.append(key, records(1, after=2), end)
    head = json.loads(store._bucket.get(HEAD).body)

    folder = f"order-17/default/{head['generation']}/"
    assert keys(store) == [folder + number_name(0), folder + number_name(2), HEAD]
    assert store._bucket.get(folder + number_name(0)).body.decode().splitlines()[1:] == [
        record.to_json() for record in records(2)
    ]


@pytest.mark.parametrize("prefix", ["tenant", "tenant/", "/tenant/"])
async def test_a_prefix_is_in_front_of_all_keys(open_store, key, records, prefix):
    store = open_store(prefix=prefix)
    await store.append(key, records(1), 0)

    assert {name.partition("/")[0] for name in keys(store)} == {"tenant"}
    assert [info.key for info in store.logs()] == [key]
    assert open_store().read(key) is None
    assert open_store(prefix="tenant").read(key).records == records(1)


async def test_lists_longer_than_a_page_are_read_to_their_end(store, key, records, monkeypatch):
    client = store._bucket._client()
    inner = client.list_objects_v2
    monkeypatch.setattr(client, "list_objects_v2", lambda **given: inner(**given, MaxKeys=3))
    end = 0
    for number in range(10):
        end = await store.append(key, records(1, after=number), end)

    assert store.read(key).records == records(10)
    assert [info.key for info in store.logs()] == [key]
    assert store.delete("order-17") is True
    assert keys(store) == []


@pytest.mark.parametrize(
    "name", ["00000000000000000012", "12.jsonl", "x" * 20 + ".jsonl", "", "head.json", "²" * 20 + ".jsonl"]
)
def test_other_names_are_no_segments(name):
    assert number_of(name) is None


# -- requests --------------------------------------------------------------------------------------------------------


async def test_a_run_costs_few_requests_and_they_do_not_grow(open_manager, make_agent, requests_of):
    manager = open_manager()
    agent = make_agent(manager, [str(number) for number in range(12)])
    seen = requests_of(manager.store)
    counts = []
    for _ in range(12):
        await agent.invoke_async("Hi.")
        counts.append(len(seen))
        seen.clear()

    assert len(set(counts[1:])) == 1
    assert counts[-1] <= 6  # lease: get and put; three commits; release


# -- leases ----------------------------------------------------------------------------------------------------------


async def test_a_lease_of_another_machine_counts_until_it_expires(store, key, records):
    await store.append(key, records(1), 0)
    rewrite(store, HEAD, hold)
    with pytest.raises(SessionConflictError, match="in use"):
        await store.lease(key)

    with pytest.raises(SessionConflictError, match="in use"):
        store.delete("order-17")

    rewrite(store, HEAD, expire)
    await (await store.lease(key)).release()


async def test_a_lease_is_renewed_by_the_heartbeat_and_before_it_would_end(store, key, records, clock, requests_of):
    lease = await store.lease(key)
    seen = requests_of(store)
    end = await store.append(key, records(1), 0)
    assert seen == ["PutObject"]

    clock.seconds += 26
    end = await store.append(key, records(1, after=1), end)
    assert seen == ["PutObject", "PutObject", "PutObject"]

    clock.seconds += 20
    leases.heartbeat.beat()
    clock.seconds += 20
    seen.clear()
    await store.append(key, records(1, after=2), end)
    assert seen == ["PutObject"]
    await lease.release()


async def test_a_writer_whose_lease_was_taken_over_gets_a_conflict_and_writes_nothing(
    store, open_store, key, records, clock
):
    lease = await store.lease(key)
    end = await store.append(key, records(1), 0)
    rewrite(store, HEAD, expire)  # it slept too long
    other = open_store()
    theirs = await other.lease(key)
    await other.replace(key, records(1, run="run_other"), other.read(key).position)
    clock.seconds += 3600

    with pytest.raises(SessionConflictError, match="taken"):
        await store.append(key, records(1, after=1), end)

    assert store.read(key).records == records(1, run="run_other")
    await lease.release()
    with pytest.raises(SessionConflictError):
        await store.lease(key)

    await theirs.release()


async def test_the_heartbeat_notices_a_lease_that_was_taken_over(store, key, records):
    lease = await store.lease(key)
    end = await store.append(key, records(1), 0)
    rewrite(store, HEAD, hold)
    leases.heartbeat.beat()

    with pytest.raises(SessionConflictError, match="taken"):
        await store.append(key, records(1, after=1), end)

    await lease.release()


async def test_a_lease_that_nobody_has_any_more_is_free_in_its_process(store, open_store, key):
    lease = await store.lease(key)
    assert not leases.heartbeat.has_lost(lease.head)
    del lease
    gc.collect()

    await (await open_store().lease(key)).release()


async def test_a_lease_that_was_given_up_while_it_was_taken_is_free(store, open_store, key):
    taking = asyncio.ensure_future(store.lease(key))
    await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking

    for _ in range(500):
        try:
            lease = await open_store().lease(key)
            break
        except SessionConflictError:
            await asyncio.sleep(0.02)

    await lease.release()


async def test_a_dead_holders_last_renewal_that_comes_late_is_no_conflict(store, key, records, monkeypatch):
    await store.append(key, records(1), 0)
    rewrite(store, HEAD, expire)
    inner, renewed = store._bucket.put, []

    def late(name, body, *, etag):
        renewed.append(name)
        monkeypatch.undo()
        rewrite(store, HEAD, lambda found: found.replace(b'"token": "x"', b'"token": "y"'))
        return inner(name, body, etag=etag)

    monkeypatch.setattr(store._bucket, "put", late)
    await (await store.lease(key)).release()  # a conflict would be raised

    assert len(renewed) == 1


# -- generations -----------------------------------------------------------------------------------------------------


async def test_replacing_leaves_one_object_and_the_head(store, key, records):
    end = 0
    for number in range(5):
        end = await store.append(key, records(1, after=number), end)

    await store.replace(key, records(3), end)

    assert len(keys(store)) == 2
    assert store.read(key).records == records(3)


@pytest.mark.parametrize("step", ["before the exchange", "after the exchange"])
async def test_a_replacement_that_breaks_off_is_the_old_log_or_the_new_one(
    store, open_store, key, records, monkeypatch, step
):
    lease = await store.lease(key)
    end = await store.append(key, records(2), 0)
    failing = "put" if step == "before the exchange" else "delete"
    inner = getattr(store._bucket, failing)

    def fail(*given, **named):
        if failing == "delete" or given[0] == HEAD:
            raise SessionException("the network is gone")

        return inner(*given, **named)

    monkeypatch.setattr(store._bucket, failing, fail)
    with pytest.raises(SessionException, match="network"):
        await store.replace(key, records(1, run="run_short"), end)

    old = records(2) if step == "before the exchange" else records(1, run="run_short")
    assert open_store().read(key).records == old
    monkeypatch.undo()
    final = await store.replace(key, records(1, run="run_short"), end)
    await lease.release()
    await (await open_store().lease(key)).release()

    assert open_store().read(key).position == final
    assert open_store().read(key).records == records(1, run="run_short")
    generation = json.loads(store._bucket.get(HEAD).body)["generation"]
    assert step == "before the exchange" or {name.split("/")[2] for name in keys(store)} == {"head.json", generation}


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:-1],
        lambda body: body[: len(body) // 2],
        lambda body: b"",
        lambda body: b"\xff" + body,
        lambda body: body.replace(b'"count": 2', b'"count": 3'),
        lambda body: body.replace(b'"run":', b'"nur":'),
    ],
)
async def test_a_damaged_segment_is_refused_and_stays_as_it_is(store, key, records, change):
    await store.append(key, records(2), 0)
    name = keys(store)[0]
    rewrite(store, name, change)
    before = store._bucket.get(name).body

    with pytest.raises(SessionDamagedError, match="order-17"):
        store.read(key)

    assert store._bucket.get(name).body == before


async def test_a_missing_segment_is_damage(store, key, records):
    end = await store.append(key, records(2), 0)
    await store.append(key, records(2, after=2), end)
    store._bucket.delete(keys(store)[:1])

    with pytest.raises(SessionDamagedError, match="lacks the object with record 0"):
        store.read(key)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"v": "x"}', b"\xff"])
async def test_a_damaged_head_is_refused_and_stays_as_it_is(store, key, records, body):
    await store.append(key, records(2), 0)
    rewrite(store, HEAD, lambda _: body)
    for act in (lambda: store.read(key), store.logs, lambda: store.delete("order-17")):
        with pytest.raises(SessionDamagedError, match=r"head\.json"):
            act()

    with pytest.raises(SessionDamagedError, match=r"head\.json"):
        await store.lease(key)

    assert store._bucket.get(HEAD).body == body


async def test_newer_objects_are_refused_by_name(store, key, records):
    await store.append(key, records(1), 0)
    rewrite(store, keys(store)[0], lambda body: body.replace(b'"segment": 1', b'"segment": 9'))
    with pytest.raises(SessionException, match=r"version 9.*upgrade"):
        store.read(key)

    rewrite(store, HEAD, lambda body: body.replace(b'"v": 1', b'"v": 9'))
    with pytest.raises(SessionException, match=r"version 9.*upgrade"):
        store.read(key)


async def test_stray_objects_are_passed_over(store, key, records):
    await store.append(key, records(1), 0)
    generation = keys(store)[0].rpartition("/")[0]
    for name in ("notes.txt", "order-17/notes.txt", f"{generation}/copy (1).jsonl", "order-17/empty/head.txt"):
        store._bucket.put(name, b"stray", etag=None)

    assert store.read(key).records == records(1)
    assert [info.key for info in store.logs()] == [key]


# -- what the service says -------------------------------------------------------------------------------------------


async def test_a_bucket_that_is_not_there_is_named(open_store, key, records):
    store = open_store(bucket="not-there-17")
    with pytest.raises(SessionException, match=r"'not-there-17'.*NoSuchBucket"):
        store.read(key)

    with pytest.raises(SessionException, match=r"'not-there-17'.*NoSuchBucket"):
        await store.append(key, records(1), 0)


async def test_a_service_that_is_away_is_a_session_error(options, key, records):
    from botocore.config import Config

    quick = Config(connect_timeout=1, retries={"total_max_attempts": 1})
    store = S3LogStore(**{**options, "endpoint_url": "http://127.0.0.1:9"}, boto_client_config=quick)
    for act in (lambda: store.append(key, records(1), 0), lambda: store.lease(key)):
        with pytest.raises(SessionException, match="cannot be reached"):
            await act()

    with pytest.raises(SessionException, match="cannot be reached"):
        store.read(key)


@pytest.mark.parametrize("wrong", ["", " ", None, 7])
def test_a_bucket_needs_a_name(wrong):
    with pytest.raises(SessionException, match="bucket="):
        S3LogStore(wrong)


def test_the_client_takes_the_callers_configuration_and_is_made_anew_after_a_fork(options):
    from botocore.config import Config

    store = S3LogStore(**options, boto_client_config=Config(read_timeout=7))
    client = store._bucket._client()
    assert client.meta.config.read_timeout == 7
    assert client.meta.config.connect_timeout == 10
    assert store._bucket._client() is client
    store._bucket._of_process.pid = -1
    assert store._bucket._client() is not client
    client.close()
    store.close()


def test_head_and_segment_survive_their_bodies():
    head = Head(LogKey("\ud800", "Å"), 17, (3, 4)).leased(30.0)
    assert Head.from_bytes(head.to_bytes(), "it") == head
    free = head.free()
    assert Head.from_bytes(free.to_bytes(), "it") == free
    assert free.to_bytes() != head.free().to_bytes()  # or an ETag would come back after somebody else's run
    segment = Segment(12, ['{"a":"Å \u2028"}', "{}"])
    assert Segment.from_bytes(segment.to_bytes(), 12, "it") == segment
