"""How much of a log is kept: what is older is folded into one snapshot record at its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays in a log record by record.

    Attributes:
        keep_last: The last runs; None for all.
        max_age: Runs that began at most so many seconds ago; None for all.
        compact_to_latest: Nothing but the latest state.
    """

    keep_last: int | None = None
    max_age: float | None = None
    compact_to_latest: bool = False

    def __post_init__(self) -> None:
        if self.keep_last is not None and (type(self.keep_last) is not int or self.keep_last < 0):
            raise ValueError(f"keep_last={self.keep_last!r}: give a whole number of runs, 0 or more")

        if self.max_age is not None and not 0 <= self.max_age < float("inf"):
            raise ValueError(f"max_age={self.max_age!r}: give seconds, 0 or more")

    @property
    def limited(self) -> bool:
        """Whether anything is ever folded."""
        return self.compact_to_latest or self.keep_last is not None or self.max_age is not None

    def cut(self, records: Sequence[Record], now: float) -> int:
        """How many records at the beginning are to be folded into one.

        Args:
            records: The whole log; its last run has ended or is paused.
            now: The time, in seconds since the epoch.
        """
        if self.compact_to_latest:
            return len(records)

        starts = [i for i, record in enumerate(records) if record.kind == "run_started" and not record.path]
        kept = starts
        if self.keep_last is not None:
            kept = starts[max(len(starts) - self.keep_last, 0) :]  # a negative start would count from the end

        if self.max_age is not None:
            kept = [i for i in kept if records[i].time >= now - self.max_age]

        return _whole_before(records, kept[0]) if kept else len(records)


def _whole_before(records: Sequence[Record], place: int) -> int:
    """The last place up to another one at which no run is under way: the next run closes one that broke off."""
    whole, under_way = 0, False
    for i, record in enumerate(records[: place + 1]):
        if not record.path and record.kind == "run_started":
            whole, under_way = (whole if under_way else i), True
        elif not record.path and record.kind == "run_resumed":
            under_way = True
        elif not record.path and record.kind in ("run_ended", "run_suspended"):
            under_way = False

    return whole


def compacted(records: Sequence[Record], cut: int, now: float) -> list[Record]:
    """The log with its first `cut` records folded into one.

    Raises:
        ValueError: The cut is in the middle of a run, or a record does not fit.
    """
    if cut <= 1:
        return list(records)

    state = fold(LogState(), records[:cut])
    if state.nested:
        raise ValueError("a sub-agent's run has not ended, and a snapshot cannot stand for it: resume it first")

    last = records[cut - 1]
    return [Record(last.run, last.number, "snapshot_loaded", state.to_data(), now), *records[cut:]]


class Gathering:
    """When folding pays: once as much has gathered as it would have to write again.

    So what a turn costs does not grow with the conversation, and a log is at most about twice as long as it must be.
    """

    __slots__ = ("_due", "_gathered")

    def __init__(self) -> None:
        self._due = self._gathered = 0

    def add(self, count: int) -> bool:
        """Notes new records; whether it is time to fold."""
        self._gathered += count
        return self._gathered >= self._due

    def folded(self, records: Sequence[Record]) -> None:
        """Begins anew, with what the log holds now."""
        self._gathered = 0
        self._due = sum(len(r.data["messages"]) if r.kind == "snapshot_loaded" else 1 for r in records)
