"""Writing to a log that is held."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import SessionConflictError
from ropewalk_session_file.files import Explained, read_all, replace_with, sync_folder, write_all, write_new
from ropewalk_session_file.held import Held
from ropewalk_session_file.lines import Entry, Scan, body_of, commit, head, lines, place_of, position_of, scan
from ropewalk_session_file.place import Place
from ropewalk_session_file.scrub import erased_texts, scrub

logger = logging.getLogger("ropewalk.session-file")

_GENERATIONS: Final = 1 << 24
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
    generation, offset = place_of(position)
    with held, Explained("written", place.log):
        file, size = held.file(make=position == 0)
        if offset and generation != held.generation:
            raise _changed(place)

        if size != offset:
            offset, there = _caught_up(file, offset, records, place)
            records = records[there:]
            if not records:
                return position_of(held.generation, offset)

        data = b"" if offset else lines([(head(place.key, _begin(held)), 0)], 0)
        data += lines(commit(records), len(data) or offset)
        try:
            write_all(file, data)
            if sync:
                os.fsync(file)
        except BaseException:
            _take_back(held, file, offset)
            raise

        if sync and offset == 0:
            for folder in (place.folder, place.session, place.session.parent):
                sync_folder(folder)

        return position_of(held.generation, offset + len(data))


def replace(held: Held, records: Sequence[Record], position: int) -> int:
    """Puts records in the place of the whole log, and gives its new end. The old file is there until the new one is.

    Raises:
        SessionConflictError: It does not end at `position`, or is gone.
        SessionException: It cannot be written; it is as it was then.
    """
    place = held.place
    with held, Explained("written", place.log):
        old = _whole(held, position)
        generation = old.generation + 1 if old.head else _begin(held)
        data = lines([(head(place.key, generation), 0), *_rewritten(old.entries, records)], 0)
        texts = erased_texts([entry.record for entry in old.entries], records)
        if texts:
            scrub(place.aside(), texts)  # first: a log without them is one that nobody erases them for again

        held.close_file()
        replace_with(place.log, data)
        return position_of(generation, len(data))


def _begin(held: Held) -> int:
    """The generation of a new file: by chance, so that one that was deleted and made anew is another one."""
    held.generation = 1 + secrets.randbelow(_GENERATIONS)
    return held.generation


def _caught_up(file: int, offset: int, records: Sequence[Record], place: Place) -> tuple[int, int]:
    """Deals with what stands after a place: where the log ends then, and how many of the records it has."""
    data = read_all(file)
    rest = data[offset:]
    if scan(data[:offset], 0, place.log).end != offset:
        raise _changed(place)

    found = scan(rest, offset, place.log)
    there = [_id(entry.record) for entry in found.entries]
    ours = bool(there) and there == [_id(record) for record in records[: len(there)]]
    if not ours and (there or found.head is not None):
        raise _changed(place)

    if found.damaged:
        _set_aside(file, data, found.end, place)

    return found.end, len(there)


def _set_aside(file: int, data: bytes, end: int, place: Place) -> None:
    aside, bad = place.next_aside(), data[end:]
    write_new(aside, bad)
    os.ftruncate(file, end)
    named, count = place.named, len(bad)
    logger.warning("%s: the %d bytes after byte %d could not be read and are in %s now", named, count, end, aside)


def _take_back(held: Held, file: int, position: int) -> None:
    with contextlib.suppress(OSError):  # what stays is set aside at the next write
        os.ftruncate(file, position)
        if position == 0:
            held.place.log.unlink()
            held.close_file()


def _whole(held: Held, position: int) -> Scan:
    """What a log holds that ends at a position."""
    place = held.place
    if position == 0 and not place.log.exists():
        return Scan(0)

    file, _ = held.file(make=False)
    data = read_all(file)
    found = scan(data, 0, place.log)
    if position_of(found.generation, found.end) != position:
        raise _changed(place)

    if found.damaged:
        _set_aside(file, data, found.end, place)

    return found


def _changed(place: Place) -> SessionConflictError:
    return SessionConflictError(
        f"{place.named} was written by another agent since this one read it: nothing of this run is in it; "
        "make a new agent, which reads it again"
    )


def _rewritten(old: Sequence[Entry], records: Sequence[Record]) -> Iterator[tuple[str, int]]:
    """Bodies of records; those that were there before are as they were, and commits stay commits."""
    before = {_id(entry.record): entry for entry in old}
    entries = [before.get(_id(record)) for record in records]
    fresh = entries.count(None)
    lefts = [entry.left if entry else (fresh := fresh - 1) for entry in entries]
    for record, entry, left in zip(records, entries, _linked(lefts), strict=True):
        yield (body_of(entry) if entry and entry.record == record else record.to_json()), left


def _linked(lefts: Sequence[int]) -> list[int]:
    """How many lines follow in each commit, where some lines of a commit may be gone."""
    made: list[int] = []
    for at in reversed(range(len(lefts))):
        goes_on = at + 1 < len(lefts) and lefts[at] == lefts[at + 1] + 1
        made.append(made[-1] + 1 if goes_on else 0)

    return made[::-1]


def _id(record: Record) -> _Id:
    return record.run, record.number, record.path
