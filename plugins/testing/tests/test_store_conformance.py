"""The store in memory, and a small one of files, held to what every store keeps; faulty ones are found out."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import os
import pathlib
import time
import types
from dataclasses import replace
from typing import ClassVar

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, SessionConflictError, StoredLog
from ropewalk_testing import MemoryLogStore, StoreConformance
from ropewalk_testing.memory_store import MemoryLease

spec = importlib.util.spec_from_file_location("line_store", pathlib.Path(__file__).parent / "crash" / "line_store.py")
line_store = importlib.util.module_from_spec(spec)
spec.loader.exec_module(line_store)


class TestMemoryStore(StoreConformance):
    shared = False

    @pytest.fixture
    def store(self):
        return MemoryLogStore()

    def reopened(self, store):
        return store.reopened()

    def raw(self, store):
        return "\n".join(store.lines()).encode()


class TestLineStore(StoreConformance):
    processes_write = 20

    @pytest.fixture
    def store(self, tmp_path):
        return line_store.LineStore(tmp_path)

    def reopened(self, store):
        return line_store.LineStore(store.folder)

    def tear(self, store, key):
        store.tear(key)

    def raw(self, store):
        return b"".join(path.read_bytes() for path in store.folder.glob("*.log"))

    @contextlib.contextmanager
    def broken(self, store):
        store.full = True
        yield
        store.full = False


# -- the tests can fail --------------------------------------------------------------------------------------------


class Changes(MemoryLogStore):
    """A store that gives other records than it was given; each subclass says which."""

    def change(self, records):
        return records

    def read(self, key):
        found = super().read(key)
        return found and StoredLog(self.change(found.records), found.position)


class TurnsRound(Changes):
    def change(self, records):
        return records[::-1]


class RoundsTimes(Changes):
    def change(self, records):
        return [replace(record, time=round(record.time)) for record in records]


class ForgetsPaths(Changes):
    def change(self, records):
        return [replace(record, path=()) for record in records]


class Ascii(Changes):
    def change(self, records):
        texts = [record.to_json().encode("ascii", "replace").decode() for record in records]
        return [Record.from_dict(json.loads(text)) for text in texts]


class BytesAsText(Changes):
    def change(self, records):
        return [replace(record, data=json.loads(json.dumps(record.data, default=str))) for record in records]


class KnownFieldsOnly(Changes):
    def change(self, records):
        return [replace(r, data={k: v for k, v in r.data.items() if k != "brought_by"}) for r in records]


class LosesState(Changes):
    def change(self, records):
        return [record for record in records if record.kind != "state_changed"]


class LosesPauses(Changes):
    def change(self, records):
        return [record for record in records if record.kind != "run_suspended"]


class MakesLogs(MemoryLogStore):
    def read(self, key):
        return super().read(key) or StoredLog([], 0)


class OneName(MemoryLogStore):
    """Puts what is alike into one log."""

    def name(self, key):
        return LogKey(key.session_id.lower(), key.agent_id.lower())

    def read(self, key):
        return super().read(self.name(key))

    async def append(self, key, records, position):
        return await super().append(self.name(key), records, position)


class OneAgent(OneName):
    def name(self, key):
        return LogKey(key.session_id, "the agent")


class RaisesValueErrors(MemoryLogStore):
    async def append(self, key, records, position):
        if "/" in key.session_id:
            raise ValueError("no slash")

        return await super().append(key, records, position)


class ListsAll(MemoryLogStore):
    def logs(self, session_id=None):
        return super().logs()


class DeletesOne(MemoryLogStore):
    def delete(self, session_id):
        keys = [info.key for info in self.logs(session_id)]
        return keys != [] and self._logs.pop(keys[0]) is not None


class DeletesUnderWriters(MemoryLogStore):
    def delete(self, session_id):
        self._leases.clear()
        return super().delete(session_id)


class Unfenced(MemoryLogStore):
    async def append(self, key, records, position):
        found = self.read(key)
        return await super().append(key, records, found.position if found else 0)

    async def replace(self, key, records, position):
        return await super().replace(key, records, self.read(key).position)


class MakesAnew(MemoryLogStore):
    async def append(self, key, records, position):
        return await super().append(key, records, position if self.read(key) else 0)


class NeverAgain(MemoryLogStore):
    def _at(self, key, position, again):
        return super()._at(key, position, None)


class OnlyTheSame(MemoryLogStore):
    def _at(self, key, position, again):
        there = self.read(key)
        return super()._at(key, position, again if there and position + len(again or ()) == there.position else None)


class AnyOfThatLength(MemoryLogStore):
    def _at(self, key, position, again):
        log = self._logs.get(key)
        if log is not None and again and position + len(again) == log.end:
            again = log.lines[position - log.base :]

        return super()._at(key, position, again)


class Counts(MemoryLogStore):
    """Its positions are numbers of records, which come again after a replacement."""

    async def replace(self, key, records, position):
        await super().replace(key, records, position)
        self._logs[key].base = 0
        return len(records)


class NoLeases(MemoryLogStore):
    async def lease(self, key):
        return MemoryLease({}, key)


class SessionLeases(MemoryLogStore):
    async def lease(self, key):
        return await super().lease(LogKey(key.session_id, ""))


class StaleRelease(MemoryLogStore):
    async def lease(self, key):
        lease = await super().lease(key)
        lease.release = lambda: self._leases.pop(key, None)
        return lease


class Races(MemoryLogStore):
    """Looks, waits, and writes."""

    async def append(self, key, records, position):
        found = self.read(key)
        if position != (found.position if found else 0):
            raise SessionConflictError("another end")

        lines = self.lines(key) if found else []
        time.sleep(0.002)
        self.put_line(key, "")
        self._logs[key].lines = [*lines, *(record.to_json() for record in records)]
        return position + len(records)


class RecordByRecord(MemoryLogStore):
    async def append(self, key, records, position):
        for record in records:
            position = await super().append(key, [record], position)
            time.sleep(0.0005)

        return position


class EmptiesFirst(MemoryLogStore):
    async def replace(self, key, records, position):
        position = await super().replace(key, [], position)
        time.sleep(0.001)
        return await super().append(key, records, position)


class SkipsNewer(MemoryLogStore):
    def read(self, key):
        lines = [json.loads(line) for line in self.lines(key)] if key in self._logs else []
        return StoredLog([Record.from_dict(line) for line in lines if line["v"] == 1], len(lines))


class KeepsOldLines(MemoryLogStore):
    """As a file would that is overwritten from its start."""

    old: ClassVar = []

    async def replace(self, key, records, position):
        KeepsOldLines.old = self.lines(key)
        return await super().replace(key, records, position)

    def lines(self, key=None):
        return [*super().lines(key), *(self.old if key is None else ())]


@pytest.mark.parametrize(
    ("faulty", "test", "given"),
    [
        (MakesLogs, "test_a_log_that_was_never_written_is_not_there", {}),
        (TurnsRound, "test_records_come_back_in_order", {}),
        (RoundsTimes, "test_every_part_of_a_record_is_kept", {}),
        (ForgetsPaths, "test_every_part_of_a_record_is_kept", {}),
        (Ascii, "test_any_text_is_kept", {"text": "\U0001f600"}),
        (BytesAsText, "test_any_value_is_kept", {"value": b"\x00"}),
        (KnownFieldsOnly, "test_unknown_fields_are_kept", {}),
        (OneName, "test_hostile_ids_are_kept_apart_or_refused", {}),
        (RaisesValueErrors, "test_hostile_ids_are_kept_apart_or_refused", {}),
        (ListsAll, "test_logs_are_listed", {}),
        (DeletesOne, "test_a_session_is_deleted_whole", {}),
        (DeletesUnderWriters, "test_a_log_that_is_being_written_is_not_deleted", {}),
        (Unfenced, "test_another_position_is_refused", {}),
        (MakesAnew, "test_a_new_log_begins_at_0", {}),
        (NeverAgain, "test_the_same_write_again_is_no_error", {}),
        (OnlyTheSame, "test_the_same_write_again_with_more_behind_adds_the_rest", {}),
        (AnyOfThatLength, "test_other_records_at_a_known_position_are_a_conflict", {}),
        (Counts, "test_a_writer_from_before_a_replacement_is_refused", {}),
        (NoLeases, "test_a_log_has_one_lease", {}),
        (StaleRelease, "test_a_log_has_one_lease", {}),
        (SessionLeases, "test_leases_are_per_log", {}),
        (Races, "test_writers_in_threads_lose_nothing", {}),
        (RecordByRecord, "test_a_reader_sees_whole_writes", {}),
        (EmptiesFirst, "test_a_log_can_be_read_while_it_is_replaced", {}),
        (SkipsNewer, "test_a_log_of_a_newer_version_is_refused", {}),
        (KeepsOldLines, "test_a_replacement_leaves_nothing_of_what_was", {}),
        (KeepsOldLines, "test_what_a_guardrail_redacts_is_nowhere", {"of_a_tool": True}),
        (KeepsOldLines, "test_what_a_guardrail_redacts_is_nowhere", {"of_a_tool": False}),
        (LosesState, "test_an_agent_is_restored_as_it_was", {"retention": None}),
        (LosesPauses, "test_a_paused_run_goes_on_in_another_agent", {}),
        (LosesState, "test_edits_between_runs_are_restored", {}),
        (Unfenced, "test_the_second_of_two_writers_is_told", {}),
        (OneAgent, "test_agents_of_a_session_are_told_apart", {}),
    ],
)
def test_a_faulty_store_fails(faulty, test, given, tmp_path):
    fails(TestMemoryStore(), test, faulty(), {**given, "tmp_path": tmp_path})


class ToldNothing(line_store.LineStore):
    """Cuts a torn end off without a word."""

    def read(self, key):
        found = super().read(key)
        return found and StoredLog(found.records, found.position)


class StumblesOverTornLines(line_store.LineStore):
    @staticmethod
    def _lines(path):
        head, *lines = path.read_bytes().split(b"\n")
        return json.loads(head)["generation"], [json.loads(line) for line in lines if line], b""


class WritesWhenFull(line_store.LineStore):
    async def append(self, key, records, position):
        full, self.full = self.full, False
        try:
            return await super().append(key, records, position)
        finally:
            self.full = full
            self._check_space()


class RaisesOSErrors(line_store.LineStore):
    def _check_space(self):
        if self.full:
            raise OSError(28, "No space left on device")


class LeasesInMemory(line_store.LineStore):
    taken: ClassVar = {}

    async def lease(self, key):
        if (os.getpid(), key) in self.taken:
            raise SessionConflictError("taken")

        return MemoryLease(self.taken, (os.getpid(), key))


class LeasesThatStay(line_store.LineStore):
    """A file that is there or not: nobody takes it away when its process dies."""

    async def lease(self, key):
        path = self._path(key).with_suffix(".taken")
        if path.exists():
            raise SessionConflictError("taken")

        path.touch()
        return types.SimpleNamespace(release=lambda: path.unlink(missing_ok=True))


class Unguarded(line_store.LineStore):
    """Reads the file, and writes it anew."""

    async def append(self, key, records, position):
        path = self._path(key)
        found, before = self.read(key), path.read_bytes() if path.exists() else b""
        if position != (found.position if found else 0):
            raise SessionConflictError("another end")

        time.sleep(0.001)
        head = json.dumps({"key": [key.session_id, key.agent_id], "generation": 0}).encode() + b"\n"
        line = json.dumps([record.to_dict() for record in records]).encode() + b"\n"
        path.with_suffix(f".{os.getpid()}").write_bytes((before or head) + line)
        path.with_suffix(f".{os.getpid()}").replace(path)
        return position + len(records)


@pytest.mark.parametrize(
    ("faulty", "test"),
    [
        (ToldNothing, "test_a_torn_write_leaves_the_good_beginning"),
        (StumblesOverTornLines, "test_a_torn_write_leaves_the_good_beginning"),
        (StumblesOverTornLines, "test_a_torn_first_write_leaves_an_empty_log"),
        (StumblesOverTornLines, "test_a_torn_log_can_be_replaced"),
        (WritesWhenFull, "test_a_failed_write_leaves_nothing"),
        (RaisesOSErrors, "test_a_failed_write_leaves_nothing"),
        (LeasesInMemory, "test_another_process_cannot_take_the_lease"),
        (LeasesThatStay, "test_the_lease_of_a_process_that_died_is_free"),
        (Unguarded, "test_writers_in_processes_lose_nothing"),
        (Unguarded, "test_writers_in_threads_lose_nothing"),
    ],
)
def test_a_faulty_store_of_files_fails(faulty, test, tmp_path):
    class Case(TestLineStore):
        def reopened(self, store):
            return faulty(store.folder)

    fails(Case(), test, faulty(tmp_path), {})


def fails(case, test, store, given):
    run = getattr(case, test)
    wanted = inspect.signature(run).parameters
    given = {name: value for name, value in given.items() if name in wanted}
    faults = (Exception, pytest.fail.Exception)
    with pytest.raises(faults) as caught:
        asyncio.run(run(store, **given)) if inspect.iscoroutinefunction(run) else run(store, **given)

    assert not isinstance(caught.value, TypeError | NameError | pytest.skip.Exception)
