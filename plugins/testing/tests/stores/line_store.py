"""A minimal store of files, as somebody else might write one: a line of JSON per commit."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os

from ropewalk import Record
from ropewalk.kits.sessions import (
    LogInfo,
    LogKey,
    SessionConflictError,
    SessionDamagedError,
    SessionException,
    StoredLog,
)


class FileLease:
    def __init__(self, file):
        self._file = file

    def release(self):
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class LineStore:
    """Each line is a list: what stands before it in bytes, and the records of one commit."""

    full = False

    def __init__(self, folder):
        self.folder = folder

    def __repr__(self):
        return f"LineStore({str(self.folder)!r})"

    def read(self, key):
        path = self._path(key)
        if not path.exists():
            return None

        generation, lines, torn = self._lines(path)
        try:
            records = [Record.from_dict(each) for line in lines for each in line]
        except ValueError as error:
            raise SessionDamagedError(f"{path}: {error}") from error

        report = (f"{path}: {len(torn)} bytes at its end were no whole line",) if torn else ()
        return StoredLog(records, generation + len(records), report)

    async def lease(self, key):
        file = os.open(self._path(key).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise SessionConflictError(f"session {key.session_id!r} is being written") from None

        return FileLease(file)

    async def append(self, key, records, position):
        self._check_space()
        path, fresh = self._path(key), [record.to_dict() for record in records]
        with self._guard(key):
            generation, lines, torn = self._lines(path) if path.exists() else (0, [], b"")
            known = [each for line in lines for each in line]
            end = generation + len(known)
            there = known[position - generation :] if generation <= position < end else []
            if there and there == json.loads(json.dumps(fresh))[: len(there)]:
                fresh, position = fresh[len(there) :], end

            if end != position:
                raise SessionConflictError(f"session {key.session_id!r} ends at {end}, not at {position}")

            if not path.exists():
                self._put(path, key, 0, fresh)
                return len(fresh)

            with path.open("ab") as file:
                file.truncate(file.tell() - len(torn))
                file.write(json.dumps(fresh).encode() + b"\n")

            return end + len(fresh)

    async def replace(self, key, records, position):
        self._check_space()
        path, fresh = self._path(key), [record.to_dict() for record in records]
        with self._guard(key):
            generation, lines, _ = self._lines(path) if path.exists() else (0, [], b"")
            end = generation + sum(map(len, lines))
            if end != position:
                raise SessionConflictError(f"session {key.session_id!r} ends at {end}, not at {position}")

            self._put(path, key, end + 1, fresh)
            return end + 1 + len(fresh)

    def logs(self, session_id=None):
        found = []
        for path in self.folder.glob("*.log"):
            key = LogKey(*json.loads(path.read_bytes().split(b"\n")[0])["key"])
            if session_id in (None, key.session_id):
                found.append(LogInfo(key, path.stat().st_size, path.stat().st_mtime))

        return sorted(found, key=lambda info: (info.key.session_id, info.key.agent_id))

    def delete(self, session_id):
        keys = [info.key for info in self.logs(session_id)]
        for key in keys:
            file = os.open(self._path(key).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SessionConflictError(f"session {session_id!r} is being written") from None
            finally:
                os.close(file)

        for key in keys:
            self._path(key).unlink()

        return bool(keys)

    def tear(self, key):
        """Cuts the last line in two."""
        path = self._path(key)
        path.write_bytes(path.read_bytes()[:-20])

    def _check_space(self):
        if self.full:
            raise SessionException(f"{self.folder}: the disk is full")

    def _guard(self, key):
        return FileGuard(self._path(key).with_suffix(".guard"))

    def _path(self, key):
        name = hashlib.sha256(json.dumps([key.session_id, key.agent_id]).encode()).hexdigest()
        return self.folder / f"{name}.log"

    @staticmethod
    def _put(path, key, generation, records):
        """Readers take no lock: a file gets its name when it is whole."""
        head = {"key": [key.session_id, key.agent_id], "generation": generation}
        other = path.with_suffix(".new")
        other.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in (head, records)))
        other.replace(path)

    @staticmethod
    def _lines(path):
        head, *lines = path.read_bytes().split(b"\n")
        return json.loads(head)["generation"], [json.loads(line) for line in lines[:-1]], lines[-1]


class FileGuard:
    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self._file)


def open_store(folder):
    return LineStore(folder)
