"""What is particular to PostgreSQL: connections that are lost, and the leases that go with them."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import pytest

from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_sql import SQLLogStore, SQLSessionManager
from ropewalk_testing import text, use

pytestmark = pytest.mark.service


@pytest.fixture
def url(postgres_url):
    return postgres_url


@pytest.fixture
def cut(postgres, url):
    """Ends all connections to the database, as a failing network does."""
    name = url.rpartition("/")[2]
    statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    return lambda: postgres.query(statement, name)


class Cutting:
    """A tool that costs the agent its connection."""

    tool_name = "cut"
    tool_spec: Final = {"name": "cut", "description": "Cuts.", "inputSchema": {"json": {"type": "object"}}}
    effect = "irreversible"

    def __init__(self, cut):
        self.cut = cut
        self.calls = 0

    async def invoke(self, call):
        self.calls += 1
        await asyncio.to_thread(self.cut)
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "done"}]}


async def taken(store, key):
    """The server notices a closed connection within moments."""
    for _ in range(200):
        try:
            return await store.lease(key)
        except SessionConflictError:
            await asyncio.sleep(0.02)

    return await store.lease(key)


async def test_a_connection_lost_in_a_run_ends_it_and_the_next_call_writes_what_was_left(url, cut, make_agent):
    manager = SQLSessionManager("order-17", url)
    tool = Cutting(cut)
    agent = make_agent(manager, [[text("I cut."), use("cut", {}, id="T1")], "I am back."], tools=[tool])

    with pytest.raises(SessionException, match="Nothing was stored"):
        await agent.invoke_async("Go.")

    result = await agent.invoke_async("Are you there?")

    assert str(result) == "I am back.\n"
    assert tool.calls == 1
    again = make_agent(SQLSessionManager("order-17", url), [])
    assert again.messages == agent.messages
    assert [block["toolResult"]["status"] for block in again.messages[2]["content"] if "toolResult" in block] == [
        "success"
    ]
    again.session_manager.close()
    manager.close()


async def test_a_lease_is_lost_with_its_connection_and_taken_again_by_the_next_commit(
    store, open_store, key, records, cut
):
    lease = await store.lease(key)
    end = await store.append(key, records(1), 0)
    cut()
    with pytest.raises(SessionException):
        await store.append(key, records(1, after=1), end)

    await store.append(key, records(1, after=1), end)
    with pytest.raises(SessionConflictError, match="in use"):
        await open_store().lease(key)

    await lease.release()
    await (await taken(open_store(), key)).release()


async def test_a_lease_that_somebody_else_took_meanwhile_is_a_conflict(store, open_store, key, records, cut):
    lease = await store.lease(key)
    end = await store.append(key, records(1), 0)
    cut()
    other = open_store()
    theirs = await taken(other, key)
    await other.append(key, records(1, run="run_other"), end)

    with pytest.raises(SessionException):
        await store.append(key, records(1, after=1), end)

    with pytest.raises(SessionConflictError):
        await store.append(key, records(1, after=1), end)

    await lease.release()
    await theirs.release()
    assert [record.run for record in store.read(key).records] == ["run_1", "run_other"]


@pytest.mark.parametrize("what", ["append", "replace"])
async def test_a_connection_lost_in_a_commit_says_so_and_the_same_write_finds_out(
    store, open_store, key, records, cut, monkeypatch, what
):
    from sqlalchemy.engine import Connection

    lease = await store.lease(key)
    end = await store.append(key, records(2), 0)
    inner = Connection.commit

    def commit(connection):
        inner(connection)
        cut()
        connection.exec_driver_sql("SELECT 1")

    write = getattr(store, what)
    monkeypatch.setattr(Connection, "commit", commit)
    with pytest.raises(SessionException, match="stored or not"):
        await write(key, records(3, after=2), end)

    monkeypatch.undo()
    end = await write(key, records(3, after=2), end)
    await lease.release()
    found = open_store().read(key)
    assert found.position == end
    assert found.records == (records(5) if what == "append" else records(3, after=2))


async def test_a_machine_that_is_gone_does_not_keep_its_lease_for_hours(store, key, postgres):
    lease = await store.lease(key)
    connection = lease._held.connection
    kept = [connection.exec_driver_sql(f"SHOW tcp_keepalives_{each}").scalar_one() for each in ("idle", "count")]
    connection.rollback()
    await lease.release()

    assert kept == ["15", "3"]


async def test_a_lease_that_was_given_up_while_it_was_taken_is_free(store, open_store, key):
    taking = asyncio.ensure_future(store.lease(key))
    await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking

    lease = await taken(open_store(), key)
    await lease.release()


async def test_a_server_that_is_away_is_a_session_error(postgres, key, records):
    store = SQLLogStore("postgresql://postgres:geheim@127.0.0.1:1/none")
    for act in (lambda: store.append(key, records(1), 0), lambda: store.lease(key)):
        with pytest.raises(SessionException, match=r"127\.0\.0\.1") as caught:
            await act()

        assert "geheim" not in str(caught.value)

    with pytest.raises(SessionException):
        store.read(key)

    assert "geheim" not in repr(store)


async def test_a_running_agent_holds_one_connection_and_gives_it_back(postgres, url, store, key, records):
    lease = await store.lease(key)
    await store.append(key, records(1), 0)
    name = url.rpartition("/")[2]
    locks = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        "WHERE locktype = 'advisory' AND datname = %s"
    )
    assert postgres.query(locks, name) == [(1,)]

    await lease.release()
    assert postgres.query(locks, name) == [(0,)]


async def test_without_psycopg_the_error_says_what_to_install(monkeypatch, key):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SessionException, match=r"pip install 'ropewalk-session-sql\[postgres\]'"):
        SQLLogStore("postgresql://postgres@127.0.0.1:1/none").read(key)
