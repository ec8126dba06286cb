"""What a model sees of the history: read-only, made in constant time, untouched by later appends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import overload

from ropewalk.history.rules import LEADING_USER
from ropewalk.types import Message


class HistoryView(Sequence[Message]):
    """The first `count` messages, with stand-ins where a stored message may not be sent as it is."""

    __slots__ = ("_count", "_fixes", "_lead", "_messages")

    def __init__(self, messages: list[Message], fixes: dict[int, Message]) -> None:
        self._messages = messages
        self._count = len(messages)
        self._fixes = dict(fixes) if fixes else None
        self._lead = 1 if messages and messages[0]["role"] == "assistant" else 0

    def __len__(self) -> int:
        return self._count + self._lead

    def __iter__(self) -> Iterator[Message]:
        plain = islice(self._messages, self._count)
        if self._fixes:
            fixes = self._fixes
            plain = (fixes.get(i, m) for i, m in enumerate(plain))  # type: ignore[assignment]

        return chain((LEADING_USER,), plain) if self._lead else iter(plain)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return list(self)[index]

        size = len(self)
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            raise IndexError(index)

        if self._lead:
            if at == 0:
                return LEADING_USER

            at -= 1

        if self._fixes and at in self._fixes:
            return self._fixes[at]

        return self._messages[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
