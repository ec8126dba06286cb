"""Writing to a log that is held."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import SessionConflictError
from ropewalk_session_file.files import Explained, read_all, replace_with, sync_folder, write_all, write_new
from ropewalk_session_file.held import Held
from ropewalk_session_file.lines import Entry, Scan, body_of, commit, head, lines, scan
from ropewalk_session_file.place import Place
from ropewalk_session_file.scrub import erased_texts, scrub

logger = logging.getLogger("ropewalk.session-file")

_Id: TypeAlias = tuple[str, int, tuple[str, ...]]


def append(held: Held, records: Sequence[Record], position: int, *, sync: bool) -> int:
    """Adds records as one commit, and gives the log's new end.

    Args:
        held: The log.
        records: What is added; those at the beginning that are there already are left out.
        position: Where the log should end.
        sync: Whether the disk is waited for.

    Raises:
        SessionConflictError: It does not end there, or is gone.
        SessionException: It cannot be written; it is as it was then.
    """
    place = held.place
    with held, Explained("written", place.log):
        file, size = held.file(make=position == 0)
        if size != position:
            position, there = _caught_up(file, size, position, records, place)
            records = records[there:]
            if not records:
                return position

        data = lines([(head(place.key), 0)], 0) if position == 0 else b""
        data += lines(commit(records), len(data) or position)
        try:
            write_all(file, data)
            if sync:
                os.fsync(file)
        except BaseException:
            _take_back(held, file, position)
            raise

        if sync and position == 0:
            for folder in (place.folder, place.session, place.session.parent):
                sync_folder(folder)

        return position + len(data)


def replace(held: Held, records: Sequence[Record], position: int) -> int:
    """Puts records in the place of the whole log, and gives its new end. The old file is there until the new one is.

    Raises:
        SessionConflictError: It does not end at `position`, or is gone.
        SessionException: It cannot be written; it is as it was then.
    """
    place = held.place
    with held, Explained("written", place.log):
        old = _whole(held, position)
        data = lines([(head(place.key), 0), *_rewritten(old, records)], 0)
        replace_with(place.log, data)
        held.close_file()
        texts = erased_texts([entry.record for entry in old], records)
        if texts:
            scrub(place.aside(), texts)

        return len(data)


def _caught_up(file: int, size: int, position: int, records: Sequence[Record], place: Place) -> tuple[int, int]:
    """Deals with what stands after the position: where the log ends then, and how many of the records it has."""
    rest = read_all(file, position)
    found = scan(rest, position, place.log)
    there = [_id(entry.record) for entry in found.entries]
    ours = bool(there) and there == [_id(record) for record in records[: len(there)]]
    if size < position or (there and not ours) or (found.head is not None and not ours):
        raise SessionConflictError(
            f"{place.named} was written by another agent since this one read it: nothing of this run is in it; "
            "make a new agent, which reads it again"
        )

    if found.damaged:
        aside = place.next_aside()
        bad = rest[found.end - position :]
        write_new(aside, bad)
        os.ftruncate(file, found.end)
        named, count, end = place.named, len(bad), found.end
        logger.warning("%s: the %d bytes after byte %d could not be read and are in %s now", named, count, end, aside)

    return found.end, len(there)


def _take_back(held: Held, file: int, position: int) -> None:
    with contextlib.suppress(OSError):  # what stays is set aside at the next write
        os.ftruncate(file, position)
        if position == 0:
            held.place.log.unlink()
            held.close_file()


def _whole(held: Held, position: int) -> list[Entry]:
    """All records of a log that ends at a position."""
    place = held.place
    found = Scan(0)
    if position or place.log.exists():
        found = scan(read_all(held.file(make=False)[0]), 0, place.log)

    if found.end != position or found.damaged:
        raise SessionConflictError(
            f"{place.named} is not as this agent has read or written it: make a new agent, which reads it again"
        )

    return found.entries


def _rewritten(old: Sequence[Entry], records: Sequence[Record]) -> Iterator[tuple[str, int]]:
    """Bodies of records; those that were there before are as they were, and commits stay commits."""
    before = {_id(entry.record): entry for entry in old}
    fresh = sum(_id(record) not in before for record in records)
    for record in records:
        entry = before.get(_id(record))
        if entry is None:
            fresh -= 1
            yield record.to_json(), fresh
        else:
            yield (body_of(entry) if entry.record == record else record.to_json()), entry.left


def _id(record: Record) -> _Id:
    return record.run, record.number, record.path
