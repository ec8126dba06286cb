"""Stores with one fault each."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import time
import types
from dataclasses import replace
from typing import ClassVar

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, SessionConflictError, StoredLog
from ropewalk_testing import MemoryLogStore
from ropewalk_testing.memory_store import MemoryLease

spec = importlib.util.spec_from_file_location("line_store", pathlib.Path(__file__).parent / "line_store.py")
line_store = importlib.util.module_from_spec(spec)
spec.loader.exec_module(line_store)


def pause(seconds=0.001):
    """Lets other threads and processes come in between."""
    time.sleep(seconds)


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


class Nameless(MemoryLogStore):
    __repr__ = object.__repr__


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
        pause()
        self.put_line(key, "")
        self._logs[key].lines = [*lines, *(record.to_json() for record in records)]
        return position + len(records)


class RecordByRecord(MemoryLogStore):
    async def append(self, key, records, position):
        for record in records:
            position = await super().append(key, [record], position)
            pause()

        return position


class EmptiesFirst(MemoryLogStore):
    async def replace(self, key, records, position):
        position = await super().replace(key, [], position)
        pause()
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

        pause()
        head = json.dumps({"key": [key.session_id, key.agent_id], "generation": 0}).encode() + b"\n"
        line = json.dumps([record.to_dict() for record in records]).encode() + b"\n"
        path.with_suffix(f".{os.getpid()}").write_bytes((before or head) + line)
        path.with_suffix(f".{os.getpid()}").replace(path)
        return position + len(records)
