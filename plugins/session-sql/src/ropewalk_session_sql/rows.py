"""What stands in the rows: ids, digests, positions."""

from __future__ import annotations

import hashlib
import json
import secrets
from functools import lru_cache
from typing import Final

from ropewalk.kits.sessions import LogKey

_NEXT_BITS: Final = 40
_ID_BITS: Final = 62


def id_text(value: str) -> str:
    """An id as the databases can hold it: without NUL and half characters. Two ids never become one text."""
    return json.dumps(value, ensure_ascii=any("\ud800" <= c <= "\udfff" for c in value))[1:-1]


def id_of(text: str) -> str:
    """The id that `id_text` has written."""
    value: str = json.loads(f'"{text}"')
    return value


def digest_of(*ids: str) -> str:
    """A name of fixed length, which indexes and locks can bear."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


@lru_cache(maxsize=1024)  # asked for at each commit
def digest_of_key(key: LogKey) -> str:
    """The digest of a log."""
    return digest_of(key.session_id, key.agent_id)


def new_id() -> int:
    """The id of a new log."""
    return secrets.randbits(_ID_BITS) or 1


def position_of(log: int, number: int) -> int:
    """The position at record `number` of a log."""
    return log << _NEXT_BITS | number


def parts_of(position: int) -> tuple[int, int]:
    """Log and record number of a position."""
    return position >> _NEXT_BITS, position & (1 << _NEXT_BITS) - 1
