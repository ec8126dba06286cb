"""An item as one file: a line that names its key and size, then its bytes. What was cut or changed by hand shows."""

from __future__ import annotations

import json
from typing import Any, Final

from ropewalk.kits.context.storage import StorageError
from ropewalk.kits.sessions.names import safe_name

SUFFIX: Final = ".item"
MOST_HEAD: Final = 65_536
"""By which byte of a file its first line has ended."""


def file_name(key: str) -> str:
    """A name that every file system holds, and that no other key has."""
    return f"{safe_name(key)}{SUFFIX}"


def framed(key: str, data: bytes) -> bytes:
    """The content of the key's file.

    Raises:
        StorageError: The key is too long.
    """
    head = json.dumps({"key": key, "size": len(data)}).encode()
    if len(head) >= MOST_HEAD:
        raise StorageError(f"a key of {len(key):,} characters is too long: use one of at most {MOST_HEAD // 8:,}")

    return b"%s\n%s" % (head, data)


def key_in(begin: bytes) -> str | None:
    """The key of the file that begins like this; None when it is no item."""
    head = _head(begin)
    return None if head is None else head["key"]


def unframed(key: str, content: bytes, where: str) -> bytes:
    """The data in the content of the key's file.

    Raises:
        StorageError: It is another's, or not whole.
    """
    head, _, data = content.partition(b"\n")
    said = _head(head + b"\n")
    if said is None or said["key"] != key or said.get("size") != len(data):
        raise StorageError(f"{where} is damaged or not what was written there: remove it, or restore it from a backup")

    return data


def _head(begin: bytes) -> dict[str, Any] | None:
    line, newline, _ = begin.partition(b"\n")
    try:
        head = json.loads(line)
    except ValueError:
        return None

    return head if newline and isinstance(head, dict) and isinstance(head.get("key"), str) else None
