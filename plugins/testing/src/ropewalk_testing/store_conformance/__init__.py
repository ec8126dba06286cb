"""What every store of logs keeps, as tests to inherit: `class TestMine(StoreConformance)` with a fixture `store`."""

from __future__ import annotations

from ropewalk_testing.store_conformance.fencing import Fencing
from ropewalk_testing.store_conformance.keeping import Keeping
from ropewalk_testing.store_conformance.mending import Mending
from ropewalk_testing.store_conformance.restoring import Restoring

__all__ = ["StoreConformance"]


class StoreConformance(Keeping, Fencing, Mending, Restoring):
    """Tests that a store of logs (`ropewalk.kits.sessions.LogStore`) passes. A subclass has a fixture `store`.

    It also overrides `reopened(store)`: another store over the same logs, as another process would open it. Where the
    store can, it overrides `tear(store, key)`, which leaves the last write half done, `raw(store)`, every byte that is
    stored, and `broken(store)`, a context manager in which nothing can be written.

    Attributes:
        shared: Whether other processes see the logs; False leaves out the tests with processes.
        processes_write: How many appends each of two processes tries at once.
    """
