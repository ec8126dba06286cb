"""The store passes what every store of logs has to pass."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest

from ropewalk_session_file import FileLogStore, files
from ropewalk_session_file.place import Place
from ropewalk_testing import StoreConformance

pytestmark = pytest.mark.long


class _FileStore(StoreConformance):
    durability = "process"

    @pytest.fixture
    def store(self, tmp_path):
        return FileLogStore(tmp_path / "sessions", durability=self.durability)

    def reopened(self, store):
        return FileLogStore(store.root, durability=self.durability)

    def tear(self, store, key):
        log = Place(store.root, key).log
        log.write_bytes(log.read_bytes()[:-25])

    def raw(self, store):
        return b"\n".join(path.read_bytes() for path in store.root.rglob("*") if path.is_file())

    @contextlib.contextmanager
    def broken(self, store):
        real = os.write

        def half(file, data):
            if len(data) < 10:
                raise OSError(errno.ENOSPC, "No space left on device")

            return real(file, data[: len(data) // 2])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files.os, "write", half)
            yield store


class TestFileLogStore(_FileStore):
    pass


class TestFileLogStoreThatWaitsForTheDisk(_FileStore):
    durability = "power"
    processes_write = 10
