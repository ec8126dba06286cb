"""A session whose run is cut off while its store still works: nothing is written twice, and nobody is locked out."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel

from ropewalk import Agent
from ropewalk.kits.sessions import SessionConflictError, SessionManager, StoredLog
from ropewalk.kits.sessions.retention import Retention


class Lease:
    def __init__(self, store):
        self.store = store

    def release(self):
        return self.store.gate("release").wait()


class Store:
    """One log, which tells where it ends. What is `slow` waits for the gate, once."""

    def __init__(self):
        self.records, self.ends, self.slow = [], 0, None
        self.open, self.waits = asyncio.Event(), asyncio.Event()
        self.at_work = []

    def gate(self, what):
        if what == self.slow:
            self.slow = None
            self.waits.set()
            return self.open

        gate = asyncio.Event()
        gate.set()
        return gate

    def read(self, key):
        return StoredLog(list(self.records), self.ends) if self.records else None

    async def lease(self, key):
        return Lease(self)

    async def append(self, key, records, position):
        if self.waits.is_set() and self.at_work:  # the replacement is through before this is
            self.open.set()
            await asyncio.wait(self.at_work)

        if position != self.ends:
            raise SessionConflictError("somebody else has written")

        self.records += records
        self.ends += 1
        return self.ends

    async def replace(self, key, records, position):
        work = asyncio.ensure_future(self._replaced(records, position))
        self.at_work.append(work)
        return await asyncio.shield(work)  # as a thread, it is not stopped with those who wait for it

    async def _replaced(self, records, position):
        await self.gate("replace").wait()
        if position != self.ends:
            raise SessionConflictError("somebody else has written")

        self.records = list(records)
        self.ends += 1
        return self.ends


def names(records):
    return [(record.run, record.number, record.path) for record in records]


def new_agent(store, *turns, **retention):
    manager = SessionManager("s", store, Retention(**retention) if retention else None)
    return Agent(model=FakeModel(*turns), session_manager=manager)


async def cut_off(agent, store, slow):
    """Runs the agent, and throws its run away while the store works on its end."""
    store.slow = slow
    run = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.wait_for(store.waits.wait(), 20)
    run.cancel()
    await asyncio.wait([run], timeout=20)
    assert run.cancelled() or isinstance(run.exception(), SessionConflictError)


@pytest.mark.parametrize(("slow", "retention"), [("release", {}), ("replace", {"keep_last": 0})])
async def test_what_was_written_when_a_run_was_cut_off_is_not_written_again(slow, retention):
    store = Store()
    agent = new_agent(store, *("one", "two", "three", "four"), **retention)
    await cut_off(agent, store, slow)
    await agent.invoke_async("go on")
    await agent.invoke_async("go on again")
    await agent.aclose()

    assert len(set(names(store.records))) == len(store.records)
    assert list(new_agent(store).messages) == list(agent.messages)
