"""What a model sees of the history: read-only, made in constant time, untouched by later appends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import overload

from ropewalk.kits.messages.rules import LEADING_USER
from ropewalk.types import Message


class Source:
    """What the views of a history read: its own lists while it only grows, copies once it changes in another way.

    The history holds it weakly, so that a change copies nothing unless somebody still has a view.
    """

    __slots__ = ("__weakref__", "fixes", "messages")

    def __init__(self, messages: list[Message], fixes: dict[int, Message]) -> None:
        self.messages = messages
        self.fixes = fixes

    def detach(self) -> None:
        """Makes the views independent of what comes."""
        self.messages = list(self.messages)
        self.fixes = dict(self.fixes)


class HistoryView(Sequence[Message]):
    """The messages up to now, with stand-ins where a stored message may not be sent as it is."""

    __slots__ = ("_count", "_lead", "_source")

    def __init__(self, source: Source) -> None:
        messages = source.messages
        self._source = source
        self._count = len(messages)
        self._lead = 1 if messages and messages[0]["role"] == "assistant" else 0

    def __len__(self) -> int:
        return self._count + self._lead

    def __iter__(self) -> Iterator[Message]:
        plain = islice(self._source.messages, self._count)
        fixes = self._source.fixes
        if fixes:
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

        source = self._source
        return source.fixes[at] if at in source.fixes else source.messages[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
