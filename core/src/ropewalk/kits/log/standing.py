"""How an agent and its log stand to each other between and during runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from ropewalk.kits.log.fold import LogState
from ropewalk.kits.log.records import Journal, Queue, Write
from ropewalk.kits.state import JSONState


class Standing:
    """What an agent that has a log must remember of it.

    Attributes:
        agrees: Whether the log adds up to the agent; if not, the next run begins with a snapshot.
        journal: The journal of the run under way.
        changes: Changes of state since the last run.
        unwritten: A journal whose last records could not be written; nothing happens before they are.
        queue: What runs have noted and not written yet.
        nested: What the log knows of sub-agents whose calls have not ended, by tool-use id.
    """

    __slots__ = ("agrees", "changes", "journal", "nested", "queue", "unwritten")

    def __init__(self) -> None:
        self.agrees = False
        self.journal: Journal | None = None
        self.changes: list[dict[str, Any]] = []
        self.unwritten: Journal | None = None
        self.queue = Queue()
        self.nested: dict[str, LogState] = {}

    def follow(self, cell: str | None, state: JSONState) -> None:
        """Has every change of a state noted.

        Args:
            cell: The plugin whose state it is; None for the agent's own.
            state: The state.
        """
        state.listen(partial(self._note, cell))

    def _note(self, cell: str | None, change: dict[str, Any]) -> None:
        data = {"cell": cell, **change}
        if self.journal is not None:
            self.journal.add("state_changed", data)
        else:
            self.changes.append(data)

    async def write_leftovers(self) -> None:
        """Writes what an earlier run could not write.

        Raises:
            Exception: It still cannot be written; the agent must not go on.
        """
        left = self.unwritten
        if left is None:
            return

        async with left.writing:
            records = left.take()
            try:
                if records:  # a run beside may have written them
                    await left.write(records)
            except BaseException:
                left.put_back(records)
                raise

            self.unwritten = None

    async def write_changes(self, run: str, write: Write) -> None:
        """Writes what has changed since the last run, when no other run will.

        Args:
            run: An id for the records.
            write: Stores records.

        Raises:
            Exception: It cannot be written, or what an earlier run left cannot.
        """
        await self.write_leftovers()
        if self.agrees and self.changes:
            journal, changes = Journal(run, write), self.changes
            for change in changes:
                journal.add("state_changed", change)

            records = journal.take()
            await write(records)
            del changes[: len(records)]  # more may have come meanwhile
