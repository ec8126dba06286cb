"""One log in a bucket: its head, its segments, and what is done with them. Everything here blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ropewalk.kits.sessions import (
    LogKey,
    SessionConflictError,
    SessionDamagedError,
    SessionException,
    StoredLog,
)
from ropewalk.kits.sessions.names import safe_name
from ropewalk.kits.sessions.texts import records_of
from ropewalk_session_s3.bucket import Bucket
from ropewalk_session_s3.head import Head, name_of, new_generation
from ropewalk_session_s3.leases import S3Lease
from ropewalk_session_s3.segments import Segment, number_name, number_of

HEAD: Final = "head.json"
_NEXT_BITS: Final = 40
_TRIES: Final = 10


class Log:
    """A log.

    Args:
        bucket: Where it is.
        prefix: In front of all keys; empty, or ends in a slash.
        key: Which log.
        lease: This process's lease on it, if there is one.
    """

    __slots__ = ("_bucket", "_folder", "_lease", "_what", "key")

    def __init__(self, bucket: Bucket, prefix: str, key: LogKey, lease: S3Lease | None = None) -> None:
        self.key = key
        self._bucket = bucket
        self._folder = f"{prefix}{safe_name(key.session_id)}/{safe_name(key.agent_id)}/"
        self._lease = lease
        self._what = f"session {key.session_id!r}, agent {key.agent_id!r}"

    def read(self) -> StoredLog | None:
        """The log, or None when there is none.

        Raises:
            SessionDamagedError: An object is missing or damaged.
            SessionException: The bucket cannot be read.
        """
        before = self._head()
        for _ in range(_TRIES):
            if before is None:
                return None

            try:
                segments = self._segments(before.generation)
            except SessionDamagedError:
                if self._generation() == before.generation:
                    raise

                segments = []

            after = self._head()
            if after is not None and after.generation == before.generation:
                return self._stored(before, segments)

            before = after  # it was replaced while it was read

        raise SessionException(f"{self._what}: it is replaced again and again while it is read; try again later")

    def take(self) -> S3Lease:
        """Takes the log for a run, and deletes what a dead process has left of replaced generations.

        Raises:
            SessionConflictError: Somebody else has it.
        """
        lease = S3Lease.take(self._bucket, self._folder + HEAD, self._what, lambda: Head(self.key, new_generation()))
        try:
            if lease.head.old:
                self._delete_old(lease.head.old)
                lease.head = replace(lease.head, old=())  # written with the next renewal, or the release
        except BaseException:
            lease.give_up()
            raise

        return lease

    def append(self, texts: list[str], position: int, known: int | None) -> int:
        """Adds records. Those that are there already, from `position` on, are not added again.

        Args:
            texts: The records, as JSON.
            position: Where.
            known: The log's end as far as this process knows it.

        Raises:
            SessionConflictError: The log does not end at `position`.
        """
        generation, start = self._place(position)
        self._ensure()
        if position != known:
            self._check_reached(generation, start)

        segment = Segment(start, texts)
        if self._bucket.put(self._name(generation, start), segment.to_bytes(), etag=None) is None:
            return self._append_rest(generation, segment)

        self._ensure()  # a write that took too long may have come after somebody else's lease and replacement
        if self._lease is None and self._generation() != generation:
            raise self._conflict()

        return position_of(generation, segment.end)

    def replace(self, texts: list[str], position: int) -> int:
        """Puts records in the place of all that the log has.

        Raises:
            SessionConflictError: The log does not end at `position`.
        """
        head, etag = self._head_to_exchange()
        generation, start = parts_of(position) if position else (head.generation, 0)
        if generation != head.generation:
            return self._replaced_before(head, generation, texts)

        self._check_reached(generation, start)
        if any(True for _ in self._numbers(generation, start)):
            raise self._conflict()

        self._delete_old(head.old)
        fresh = new_generation()
        self._bucket.put(self._name(fresh, 0), Segment(0, texts).to_bytes(), etag=None)
        exchanged = replace(head, generation=fresh, old=(generation,))
        try:
            self._exchange(exchanged, etag)
        except SessionConflictError:
            self._bucket.delete([self._name(fresh, 0)])
            raise

        self._delete_old(exchanged.old)
        return position_of(fresh, len(texts))

    # -- the head --------------------------------------------------------------------------------------------------

    def _head(self) -> Head | None:
        found = self._bucket.get(self._folder + HEAD)
        return Head.from_bytes(found.body, self._named(HEAD)) if found is not None else None

    def _generation(self) -> int | None:
        head = self._head()
        return head.generation if head is not None else None

    def _place(self, position: int) -> tuple[int, int]:
        """Generation and number of a position, which must be of the generation that counts."""
        generation, start = parts_of(position)
        current = self._lease.head.generation if self._lease is not None else self._generation()
        if position == 0:
            return current if current is not None else self._begin(), 0

        if generation != current:
            raise self._conflict()

        return generation, start

    def _begin(self) -> int:
        """Makes the head of a new log, for a writer without a lease."""
        head = Head(self.key, new_generation())
        if self._bucket.put(self._folder + HEAD, head.to_bytes(), etag=None) is None:
            raise self._conflict()

        return head.generation

    def _head_to_exchange(self) -> tuple[Head, str | None]:
        if self._lease is not None:
            self._lease.ensure()
            return self._lease.head, None

        found = self._bucket.get(self._folder + HEAD)
        if found is not None:
            return Head.from_bytes(found.body, self._named(HEAD)), found.etag

        return Head(self.key, new_generation()), None

    def _exchange(self, head: Head, etag: str | None) -> None:
        if self._lease is not None:
            self._lease.write(head)
        elif self._bucket.put(self._folder + HEAD, head.to_bytes(), etag=etag) is None:
            raise self._conflict()

    def _ensure(self) -> None:
        if self._lease is not None:
            self._lease.ensure()

    # -- segments --------------------------------------------------------------------------------------------------

    def _numbers(self, generation: int, start: int = 0) -> list[int]:
        """The numbers of a generation's segments, from one on."""
        folder = f"{self._folder}{name_of(generation)}/"
        after = folder + number_name(start - 1) if start else ""
        found = (number_of(listed.key.removeprefix(folder)) for listed in self._bucket.listed(folder, after))
        return [number for number in found if number is not None]

    def _segments(self, generation: int, start: int = 0) -> list[Segment]:
        """The segments of a generation, from one on."""
        numbers = self._numbers(generation, start)
        names = [self._name(generation, number) for number in numbers]
        segments = []
        for number, name, found in zip(numbers, names, self._bucket.get_all(names), strict=True):
            if found is None or number != start:
                raise SessionDamagedError(
                    f"{self._what}: {self._bucket} lacks the object with record {start}; restore it from a backup"
                )

            segment = Segment.from_bytes(found.body, number, f"{self._bucket}: {name}")
            segments.append(segment)
            start = segment.end

        return segments

    def _check_reached(self, generation: int, start: int) -> None:
        """Refuses a position that is none of the log's: it would leave a gap."""
        if start == 0:
            return

        before = [number for number in self._numbers(generation) if number < start]
        last = self._segments_at(generation, before[-1]) if before else None
        if last is None or last.end != start:
            raise self._conflict()

    def _segments_at(self, generation: int, number: int) -> Segment | None:
        name = self._name(generation, number)
        found = self._bucket.get(name)
        return Segment.from_bytes(found.body, number, f"{self._bucket}: {name}") if found is not None else None

    def _append_rest(self, generation: int, segment: Segment) -> int:
        """Whether the place is taken because these records, or the first of them, were stored before."""
        there = [text for each in self._segments(generation, segment.start) for text in each.texts]
        if not there or there != segment.texts[: len(there)]:
            raise self._conflict()

        end = position_of(generation, segment.start + len(there))
        rest = segment.texts[len(there) :]
        return self.append(rest, end, end) if rest else end

    def _replaced_before(self, head: Head, generation: int, texts: list[str]) -> int:
        """Whether another generation counts because this very replacement was done before, and its answer was lost."""
        segments = self._segments(head.generation)
        if generation not in head.old or [each.texts for each in segments] != [texts]:
            raise self._conflict()

        return position_of(head.generation, len(texts))

    def _delete_old(self, generations: tuple[int, ...]) -> None:
        for generation in generations:
            self._bucket.delete([each.key for each in self._bucket.listed(f"{self._folder}{name_of(generation)}/")])

    def _stored(self, head: Head, segments: list[Segment]) -> StoredLog | None:
        texts = [text for segment in segments for text in segment.texts]
        if not texts:
            return None

        return StoredLog(records_of(texts, self._what), position_of(head.generation, len(texts)))

    # -- words -----------------------------------------------------------------------------------------------------

    def _name(self, generation: int, number: int) -> str:
        return f"{self._folder}{name_of(generation)}/{number_name(number)}"

    def _named(self, name: str) -> str:
        return f"{self._bucket}: {self._folder}{name}"

    def _conflict(self) -> SessionConflictError:
        return SessionConflictError(
            f"{self._what} was written or deleted by somebody else since it was read, in {self._bucket}: build the "
            "agent again, which reads it, and repeat the call"
        )


def position_of(generation: int, number: int) -> int:
    """The position at record `number` of a generation."""
    return generation << _NEXT_BITS | number


def parts_of(position: int) -> tuple[int, int]:
    """Generation and record number of a position."""
    return position >> _NEXT_BITS, position & (1 << _NEXT_BITS) - 1
