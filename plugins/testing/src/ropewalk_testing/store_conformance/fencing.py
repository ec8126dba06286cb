"""Who may write: positions, leases, threads, processes."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import threading
from typing import Any

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, LogStore, SessionConflictError, SessionException
from ropewalk_testing.store_conformance.base import KEY, Conformance, note, notes
from ropewalk_testing.store_conformance.processes import Child

SECONDS = 30.0


async def give_up(lease: Any) -> None:
    """Releases a lease, whether that is asynchronous or not."""
    done = lease.release()
    if inspect.isawaitable(done):
        await done


class Fencing(Conformance):
    """Tests of positions and leases."""

    # -- positions -------------------------------------------------------------------------------------------------

    async def test_another_position_is_refused(self, store: LogStore) -> None:
        """One that is too low, and one that is too high; nothing is written."""
        start = await store.append(KEY, notes(1), 0)
        end = await store.append(KEY, notes(2, 1), start)
        for position in (0, start, end + 1):
            with pytest.raises(SessionConflictError):
                await self.reopened(store).append(KEY, notes(1, run="other"), position)

            with pytest.raises(SessionConflictError):
                await self.reopened(store).replace(KEY, notes(1, run="other"), position)

        assert self.records(store) == notes(3)
        assert self.end(store) == end

    async def test_a_new_log_begins_at_0(self, store: LogStore) -> None:
        """A writer whose log was deleted does not make it anew with its end only."""
        end = await store.append(KEY, notes(2), 0)
        store.delete(KEY.session_id)

        with pytest.raises(SessionException):
            await store.append(KEY, notes(2, 2), end)

        assert not self.records(store)

    async def test_the_same_write_again_is_no_error(self, store: LogStore) -> None:
        """Its answer may have been lost. The records are there once."""
        start = await store.append(KEY, notes(2), 0)
        end = await store.append(KEY, notes(3, 2), start)

        assert await self.reopened(store).append(KEY, notes(3, 2), start) == end
        assert self.records(store) == notes(5)

    async def test_the_same_write_again_with_more_behind_adds_the_rest(self, store: LogStore) -> None:
        """An agent whose write was answered by an error tries again together with what came since."""
        start = await store.append(KEY, notes(2), 0)
        await store.append(KEY, notes(3, 2), start)
        end = await self.reopened(store).append(KEY, notes(5, 2), start)

        assert self.records(store) == notes(7)
        assert end == self.end(store)

    async def test_other_records_at_a_known_position_are_a_conflict(self, store: LogStore) -> None:
        """Two runs that went on from one place: the second one is told."""
        start = await store.append(KEY, notes(1), 0)
        await store.append(KEY, notes(2, 1, "run_a"), start)

        for others in (notes(2, 1, "run_b"), [*notes(1, 1, "run_a"), note(2, "run_b")]):
            with pytest.raises(SessionConflictError):
                await store.append(KEY, others, start)

        assert self.records(store) == [*notes(1), *notes(2, 1, "run_a")]

    async def test_a_writer_from_before_a_replacement_is_refused(self, store: LogStore) -> None:
        """Also when the log has grown to the very length that it knew."""
        known = await store.append(KEY, notes(4), 0)
        end = await store.replace(KEY, notes(1, run="folded"), known)
        with pytest.raises(SessionConflictError):
            await store.append(KEY, notes(1, run="late"), known)

        end = await store.append(KEY, notes(3, 1), end)
        with pytest.raises(SessionConflictError):
            await store.append(KEY, notes(1, run="late"), known)

        assert self.records(store) == [*notes(1, run="folded"), *notes(3, 1)]
        assert self.end(store) == end

    # -- leases ----------------------------------------------------------------------------------------------------

    async def test_a_log_has_one_lease(self, store: LogStore) -> None:
        """In one process, whatever store object it is taken by; giving it up twice does not free the next one's."""
        first = await store.lease(KEY)
        for other in (store, self.reopened(store)):
            with pytest.raises(SessionConflictError):
                await other.lease(KEY)

        await give_up(first)
        second = await self.reopened(store).lease(KEY)
        await give_up(first)
        with pytest.raises(SessionConflictError):
            await store.lease(KEY)

        await give_up(second)

    async def test_leases_are_per_log(self, store: LogStore) -> None:
        """Other agents of the session are free, and so is reading."""
        await store.append(KEY, notes(1), 0)
        lease = await store.lease(KEY)
        await give_up(await store.lease(LogKey(KEY.session_id, "other")))

        assert self.records(store) == notes(1)
        await give_up(lease)

    async def test_a_log_that_is_being_written_is_not_deleted(self, store: LogStore) -> None:
        """The session stays whole."""
        await store.append(KEY, notes(2), 0)
        lease = await store.lease(KEY)
        with pytest.raises(SessionConflictError):
            self.reopened(store).delete(KEY.session_id)

        assert self.records(store) == notes(2)
        await give_up(lease)
        assert store.delete(KEY.session_id) is True

    async def test_another_process_cannot_take_the_lease(self, store: LogStore) -> None:
        """While it is held here; afterwards it can."""
        self.needs_processes()
        await store.append(KEY, notes(1), 0)
        lease = await store.lease(KEY)
        assert await self._in_another_process(store, self._try_lease) == "conflict"
        await give_up(lease)
        assert await self._in_another_process(store, self._try_lease) == "taken"

    async def test_the_lease_of_a_process_that_died_is_free(self, store: LogStore) -> None:
        """And not before it dies."""
        self.needs_processes()
        await store.append(KEY, notes(1), 0)

        async def hold(other: LogStore) -> str:
            self.held = await other.lease(KEY)
            return "taken"

        with Child(lambda: self._alone(store, hold), stays=True) as child:
            assert await asyncio.to_thread(child.answer, SECONDS) == "taken"
            with pytest.raises(SessionConflictError):
                await store.lease(KEY)

            child.kill()

        await give_up(await store.lease(KEY))

    # -- at once ---------------------------------------------------------------------------------------------------

    def test_writers_in_threads_lose_nothing(self, store: LogStore) -> None:
        """Each appends to the end it sees; who comes too late gets a conflict and looks again."""
        threads, each = 4, 10
        failures: list[BaseException] = []
        all_there = threading.Barrier(threads)

        def write(name: str) -> None:
            try:
                other = self.reopened(store)
                all_there.wait(SECONDS)
                asyncio.run(self._append_all(other, name, each))
            except BaseException as error:  # noqa: BLE001 - shown by the test
                failures.append(error)

        working = [threading.Thread(target=write, args=(f"writer{n}",)) for n in range(threads)]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join(SECONDS)

        assert not failures
        self._check_all(self.records(store), threads, each)

    def test_agents_of_a_session_write_side_by_side(self, store: LogStore) -> None:
        """Logs of their own do not disturb each other, in one store."""
        each = 10

        async def write(name: str) -> None:
            end, key = 0, LogKey(KEY.session_id, name)
            for number in range(each):
                end = await store.append(key, notes(2, 2 * number, name), end)

        names = [f"agent{n}" for n in range(4)]
        threads = [threading.Thread(target=lambda name=name: asyncio.run(write(name))) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)

        for name in names:
            assert self.records(store, LogKey(KEY.session_id, name)) == notes(2 * each, 0, name)

    async def test_writers_in_processes_lose_nothing(self, store: LogStore) -> None:
        """Two processes append to one log at once."""
        self.needs_processes()
        each = self.processes_write
        both_there = multiprocessing.Barrier(2)

        async def append(other: LogStore, name: str) -> str:
            both_there.wait(SECONDS)
            return await self._append_all(other, name, each)

        def work(name: str) -> str:
            return self._alone(store, lambda other: append(other, name))

        with Child(lambda: work("writer0")) as one, Child(lambda: work("writer1")) as two:
            answers = [await asyncio.to_thread(child.answer, 2 * SECONDS) for child in (one, two)]

        assert answers == ["done", "done"]
        self._check_all(self.records(store), 2, each)

    async def test_a_reader_sees_whole_writes(self, store: LogStore) -> None:
        """A commit is there whole or not at all, whenever one looks."""
        done = threading.Event()

        def write() -> None:
            async def work() -> None:
                end = 0
                for number in range(40):
                    end = await store.append(KEY, notes(5, 5 * number), end)

            try:
                asyncio.run(work())
            finally:
                done.set()

        writer = threading.Thread(target=write)
        writer.start()
        counts = set()
        while not done.is_set():
            counts.add(len(self.records(store)))

        writer.join(SECONDS)
        assert {count % 5 for count in counts} <= {0}
        assert self.records(store) == notes(200)

    async def test_a_log_can_be_read_while_it_is_replaced(self, store: LogStore) -> None:
        """At every instant it is the old one or the new one."""
        done = threading.Event()
        await store.append(KEY, notes(20), 0)
        valid = [tuple(map(str, notes(20))), tuple(map(str, notes(1, run="folded")))]

        def write() -> None:
            async def work() -> None:
                for _ in range(20):
                    end = await store.replace(KEY, notes(1, run="folded"), self.end(store))
                    await store.replace(KEY, notes(20), end)

            try:
                asyncio.run(work())
            finally:
                done.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen: set[tuple[str, ...]] = set()
        while not done.is_set():
            seen.add(tuple(map(str, self.records(store))))

        writer.join(SECONDS)
        assert seen <= set(valid)
        assert self.records(store) == notes(20)

    # -- their parts -----------------------------------------------------------------------------------------------

    async def _append_all(self, store: LogStore, name: str, each: int) -> str:
        for number in range(each):
            for _ in range(2_000):
                try:
                    await store.append(KEY, notes(2, 2 * number, name), self.end(store))
                    break
                except SessionConflictError:
                    await asyncio.sleep(0.001)
            else:
                raise AssertionError(f"{name} met a conflict at each of 2,000 attempts")

        return "done"

    @staticmethod
    def _check_all(records: list[Record], writers: int, each: int) -> None:
        """All of everybody's, each commit together, each writer's in its order."""
        assert len(records) == 2 * writers * each
        for name in {record.run for record in records}:
            assert [record.number for record in records if record.run == name] == list(range(2 * each))

        for first, second in zip(records[::2], records[1::2], strict=True):
            assert (first.run, first.number + 1) == (second.run, second.number)

    async def _in_another_process(self, store: LogStore, work: Any) -> str:
        with Child(lambda: self._alone(store, work)) as child:
            return str(await asyncio.to_thread(child.answer, SECONDS))

    def _alone(self, store: LogStore, work: Any) -> str:
        """Runs in the child: the work, on a store and an event loop of its own."""
        return str(asyncio.run(work(self.reopened(store))))

    @staticmethod
    async def _try_lease(store: LogStore) -> str:
        try:
            await give_up(await store.lease(KEY))
        except SessionConflictError:
            return "conflict"

        return "taken"
