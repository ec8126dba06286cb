"""Where what leaves the context is kept: bytes under keys, in memory or wherever an object of this shape puts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, final, runtime_checkable

from ropewalk.errors import RopewalkError


class StorageError(RopewalkError):
    """A storage cannot be reached, is full, or holds something damaged. What was there before is still there."""


@runtime_checkable
class ContextStorage(Protocol):
    """Keeps bytes under keys, which may be any text. It may serve many agents, threads and event loops at once.

    It may also have `durable` (default True): whether what it keeps outlives the process.
    """

    async def write(self, key: str, data: bytes) -> None:
        """Keeps the bytes, whole or not at all; what was under the key is replaced.

        Raises:
            StorageError: It cannot; nothing has changed.
        """
        ...

    async def read(self, key: str) -> bytes | None:
        """What is under the key; None when there is nothing.

        Raises:
            StorageError: It cannot be read, or is damaged.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Removes what is under the key; False when there is nothing.

        Raises:
            StorageError: It cannot be removed.
        """
        ...

    async def list(self, prefix: str = "") -> Sequence[str]:
        """The keys that begin with the prefix, sorted.

        Raises:
            StorageError: The storage cannot be read.
        """
        ...


@final
class MemoryStorage:
    """Keeps everything in this process, until it is removed or the storage is gone.

    Args:
        most_bytes: How much it holds; None for no limit.
    """

    __slots__ = ("_items", "_most", "_size")

    durable: Final = False

    def __init__(self, most_bytes: int | None = None) -> None:
        if most_bytes is not None and most_bytes < 0:
            raise ValueError(f"most_bytes={most_bytes!r}: give a number of bytes from 0 on, or None")

        self._items: dict[str, bytes] = {}
        self._most = most_bytes
        self._size = 0

    def __repr__(self) -> str:
        return f"MemoryStorage({len(self._items)} items, {self._size:,} bytes)"

    async def write(self, key: str, data: bytes) -> None:
        """See `ContextStorage`."""
        size = self._size + len(data) - len(self._items.get(key, b""))
        if self._most is not None and size > self._most:
            raise StorageError(
                f"the storage in memory is full: {len(data):,} bytes do not fit beside {self._size:,} of "
                f"{self._most:,}: allow more, or use a folder"
            )

        self._items[key], self._size = bytes(data), size

    async def read(self, key: str) -> bytes | None:
        """See `ContextStorage`."""
        return self._items.get(key)

    async def delete(self, key: str) -> bool:
        """See `ContextStorage`."""
        data = self._items.pop(key, None)
        self._size -= len(data or b"")
        return data is not None

    async def list(self, prefix: str = "") -> Sequence[str]:
        """See `ContextStorage`."""
        return sorted(key for key in self._items if key.startswith(prefix))
