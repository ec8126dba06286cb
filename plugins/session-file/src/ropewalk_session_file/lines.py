"""The lines of a log file: one record each, with a checksum and what tells whether its commit is whole.

    {"crc":"8c736521","left":1,"run":"run_5f0c","n":0,"kind":"run_started", ...}
    {"crc":"01d7afb4","left":0,"run":"run_5f0c","n":1,"kind":"message_appended", ...}

`left` counts the lines of the same commit that follow: a commit whose last line is missing did not happen. `crc` is the
CRC-32 of the line's place in the file and of all that follows it in the line, so a line that was lost, moved or doubled
shows as much as one that was changed. The first line of a file names the format, the session and the agent, and its
generation: one that is made in the place of another counts on.
"""

from __future__ import annotations

import contextlib
import gc
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey, SessionException

FORMAT: Final = 1
SAID_BY: Final = 100
"""By which byte of the file the generation was said."""

_BEFORE: Final = b'{"crc":"'
_CRC: Final = slice(len(_BEFORE), len(_BEFORE) + 8)
_BITS: Final = 48
_OFFSET: Final = (1 << _BITS) - 1
_GENERATION: Final = re.compile(rb'"generation":([0-9]+),')
_REST: Final = len(_BEFORE) + 9  # from the comma after the checksum to the end


def line(body: str, left: int, offset: int) -> bytes:
    """One line.

    Args:
        body: A JSON object.
        left: How many lines of the commit follow.
        offset: Where in the file the line begins.
    """
    rest = f',"left":{left},{body[1:]}'.encode()
    return b'%s%08x"%s\n' % (_BEFORE, _sum(rest, offset), rest)


def lines(bodies: Iterable[tuple[str, int]], offset: int) -> bytes:
    """Lines one after the other, from pairs of body and `left`."""
    made: list[bytes] = []
    for body, left in bodies:
        made.append(line(body, left, offset))
        offset += len(made[-1])

    return b"".join(made)


def commit(records: Sequence[Record]) -> list[tuple[str, int]]:
    """The bodies of records that are written as one."""
    last = len(records) - 1
    return [(record.to_json(), last - at) for at, record in enumerate(records)]


def head(key: LogKey, generation: int) -> str:
    """The body of a file's first line."""
    said = {"log": FORMAT, "generation": generation, "session": key.session_id, "agent": key.agent_id}
    return json.dumps(said, separators=(",", ":"))


def generation_in(begin: bytes) -> int:
    """The generation of the file that begins like this; -1 when it does not say."""
    said = _GENERATION.search(begin[:SAID_BY])
    return -1 if said is None else int(said[1])


def position_of(generation: int, offset: int) -> int:
    """A place in a file of a generation, as one number; 0 is the beginning of a log that is not there."""
    return generation << _BITS | offset if offset else 0


def place_of(position: int) -> tuple[int, int]:
    """Generation and place in the file."""
    return position >> _BITS, position & _OFFSET


@dataclass(slots=True)
class Entry:
    """A record as it stands in a file.

    Attributes:
        record: The record.
        body: Its JSON in the file, also what this version knows nothing of.
        left: How many lines of its commit follow.
    """

    record: Record
    body: bytes
    left: int


@dataclass(slots=True)
class Scan:
    """What a file holds.

    Attributes:
        entries: The records of whole commits, up to the first thing that is wrong.
        end: Where they end, in bytes from the beginning of the file.
        size: Where the file ends.
        head: The first line; None when there is none.
    """

    size: int
    end: int = 0
    head: dict[str, Any] | None = None
    entries: list[Entry] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        """Whether something follows the last whole commit."""
        return self.end < self.size

    @property
    def generation(self) -> int:
        """The generation that the first line says; 0 when there is none."""
        said = (self.head or {}).get("generation", 0)
        return said if type(said) is int else 0


def scan(data: bytes, start: int, path: object) -> Scan:
    """Reads lines up to the first commit that is not whole and unchanged.

    Args:
        data: The file, from `start` on.
        start: Where in the file it begins; 0 also reads the first line.
        path: Names the file in errors.

    Raises:
        SessionException: A line is whole and of a newer version, or of something else.
    """
    with _collector_off():
        return _scanned(data, start, path)


def _scanned(data: bytes, start: int, path: object) -> Scan:
    found = Scan(start + len(data), start)
    whole = _unchanged(data, start)
    values = _parsed(whole, path)
    if start == 0 and values:
        found.head = values[0]
        if values[0].get("log") != FORMAT:
            raise _unknown(path, f"its format is {values[0].get('log')!r}, and this is {FORMAT}")

        found.end = len(whole[0]) + 1
        del values[0], whole[0]

    at, batch = found.end, list[Entry]()
    for text, value in zip(whole, values, strict=True):
        left = value.pop("left", None)
        if type(left) is not int or (batch and left != batch[-1].left - 1):
            break

        try:
            record = Record.from_json(value, text)
        except ValueError as error:
            raise _unknown(path, str(error)) from error

        at += len(text) + 1
        batch.append(Entry(record, text, left))
        if left == 0:
            found.entries += batch
            found.end, batch = at, []

    return found


def body_of(entry: Entry) -> str:
    """The JSON of a record as the file has it, without checksum and `left`."""
    return "{" + entry.body[_REST:].decode().split(",", 2)[2]


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """All that is made here stays, and looking it through for garbage again and again costs as much as making it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _sum(rest: bytes, offset: int) -> int:
    return zlib.crc32(rest, offset & 0xFFFFFFFF)


def _unchanged(data: bytes, offset: int) -> list[bytes]:
    """The lines at the beginning whose checksums are right; what follows the last newline is none."""
    pieces = data.split(b"\n")
    pieces.pop()
    for at, piece in enumerate(pieces):
        wanted = b"%08x" % _sum(piece[_REST:], offset)
        if piece[_CRC] != wanted or not piece.startswith(_BEFORE) or piece[_CRC.stop : _CRC.stop + 1] != b'"':
            return pieces[:at]

        offset += len(piece) + 1

    return pieces


def _parsed(pieces: list[bytes], path: object) -> list[dict[str, Any]]:
    try:
        values = json.loads(b"[" + b",".join(pieces) + b"]")
    except (ValueError, RecursionError) as error:
        raise _unknown(path, f"a line is no JSON ({error})") from error

    if len(values) != len(pieces) or not all(type(value) is dict for value in values):
        raise _unknown(path, "a line is no JSON object")

    return values  # type: ignore[no-any-return]  # checked right above


def _unknown(path: object, why: str) -> SessionException:
    return SessionException(f"{path} cannot be read: {why}; open it with the version of ropewalk that wrote it")
