"""What a subclass says of its store, and what all tests use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, LogStore

KEY = LogKey("a session", "an agent")


def note(number: int, run: str = "run_1", **data: Any) -> Record:
    """A record that says something and changes nothing."""
    return Record(run, number, "once", {"key": f"k{number}", "value": 1, **data}, 1_700_000_000.25 + number)


def notes(count: int, start: int = 0, run: str = "run_1") -> list[Record]:
    """Records with the numbers from `start` on."""
    return [note(number, run) for number in range(start, start + count)]


class Conformance:
    """Attributes and hooks; see `StoreConformance`."""

    shared: ClassVar[bool] = True
    processes_write: ClassVar[int] = 50

    # -- what a subclass gives -------------------------------------------------------------------------------------

    @pytest.fixture
    def store(self) -> Any:
        """Makes an empty store; to be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__}: give a fixture `store` that makes the store under test, empty"
        )

    def reopened(self, store: Any) -> LogStore:
        """Another store over the same logs; to be overridden. It is called in other processes too."""
        raise NotImplementedError(
            f"{type(self).__name__}: give a method reopened(store): another store of the same logs"
        )

    def tear(self, store: Any, key: LogKey) -> None:  # noqa: ARG002 - for those who override it
        """Leaves the last write of a log half done, as a power failure does."""
        pytest.skip("the store has no torn writes (no method tear)")

    def raw(self, store: Any) -> bytes:
        """Every byte that is stored. Default: what can be read."""
        found = [self.reopened(store).read(info.key) for info in store.logs()]
        return "\n".join(record.to_json() for log in found if log is not None for record in log.records).encode()

    def broken(self, store: Any) -> AbstractContextManager[Any]:  # noqa: ARG002 - for those who override it
        """A context in which the store cannot write: a full disk, a connection that is lost."""
        pytest.skip("there is no way to break the store (no method broken)")

    # -- their parts -----------------------------------------------------------------------------------------------

    def needs_processes(self) -> None:
        """Leaves the test out if other processes do not see the logs."""
        if not self.shared:
            pytest.skip("other processes do not see the logs")

    def records(self, store: LogStore, key: LogKey = KEY) -> list[Record]:
        """What another store finds; nothing when there is no log."""
        found = self.reopened(store).read(key)
        return [] if found is None else found.records

    def end(self, store: LogStore, key: LogKey = KEY) -> int:
        """Where the log ends."""
        found = store.read(key)
        return 0 if found is None else found.position
