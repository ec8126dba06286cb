"""Segments: the records of one commit, as lines of JSON in one object; the first line says how many there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from ropewalk.kits.sessions import SessionDamagedError, SessionException

VERSION: Final = 1
_DIGITS: Final = 20
_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class Segment:
    """Records that were written together.

    Attributes:
        start: The number of the first one.
        texts: The records, as JSON.
    """

    start: int
    texts: list[str]

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.start + len(self.texts)

    def to_bytes(self) -> bytes:
        """The object's body."""
        first = json.dumps({"segment": VERSION, "start": self.start, "count": len(self.texts)})
        return "\n".join([first, *self.texts, ""]).encode()

    @classmethod
    def from_bytes(cls, body: bytes, start: int, what: str) -> Segment:
        """The segment of an object's body.

        Args:
            body: The body.
            start: The number that its key has.
            what: Names the object in errors.

        Raises:
            SessionDamagedError: It is none, or a part of one.
            SessionException: It is a newer version's.
        """
        try:
            first, *texts, last = body.decode().split("\n")
            head = json.loads(first)
            version, said = head["segment"], (head["start"], head["count"], "")
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(what, str(error)) from error

        if type(version) is int and version > VERSION:
            raise SessionException(
                f"{what} is of version {version}, and this is {VERSION}: pip install --upgrade ropewalk-session-s3"
            )

        if said != (start, len(texts), last):
            raise _damaged(what, "it is not whole")

        return cls(start, texts)


def number_name(number: int) -> str:
    """The last part of a segment's key."""
    return f"{number:0{_DIGITS}d}{_SUFFIX}"


def number_of(name: str) -> int | None:
    """The number in the last part of a key; None when it is no segment's."""
    digits = name.removesuffix(_SUFFIX)
    is_number = name.endswith(_SUFFIX) and len(digits) == _DIGITS and digits.isascii() and digits.isdigit()
    return int(digits) if is_number else None


def _damaged(what: str, reason: str) -> SessionDamagedError:
    return SessionDamagedError(f"{what} is damaged ({reason}): restore it from a backup; nothing was changed")
