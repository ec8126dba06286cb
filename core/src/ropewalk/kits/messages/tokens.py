"""How many tokens the next request has: what the model counted last, and an estimate of what is new since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from ropewalk.kits.messages.estimate import message_tokens
from ropewalk.types import Message, Usage

_LEAST: Final = 0.5
_MOST: Final = 4.0
_HIDDEN: Final = 1_000
"""An answer that has that many tokens more than can be made out is one whose thinking the provider keeps to itself: it
does not come back with the next request."""


class TokenCount:
    """Counts the tokens of one conversation; each message is looked at once.

    While messages are only added, the count is the usage of the last answer plus an estimate of what is new. After a
    splice it is an estimate of everything, in the proportion that estimate and usage had before.
    """

    __slots__ = ("_ratio", "_seen", "_sizes", "_sum", "_usage", "_version")

    def __init__(self) -> None:
        self._sizes: list[tuple[Message, int]] = []
        self._sum = 0
        self._version: int | None = None
        self._ratio = 1.0
        self._usage = 0
        self._seen: Message | None = None  # the last message that the usage covers

    def observe(self, usage: Usage, answer: Message) -> None:
        """Takes the usage of an answer that has just been added."""
        read = usage["inputTokens"] + usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
        wrote = usage["outputTokens"]
        if wrote > _HIDDEN:
            shown = message_tokens(answer)
            wrote = wrote if wrote <= shown * _MOST + _HIDDEN else shown

        if read > 0:
            self._usage, self._seen = read + wrote, answer

    def of(self, messages: Sequence[Message], version: int, around: Callable[[], int]) -> int:
        """The tokens of a request with these messages.

        Args:
            messages: The whole conversation.
            version: Changes with every change other than at the end.
            around: Estimates what the request holds beside the messages; called when the usage does not tell it.
        """
        self._look_at(messages, version, around)
        place = self._place()
        if place is not None:
            return self._usage + sum(size for _, size in self._sizes[place:])

        return ceil((around() + self._sum) * self._ratio)

    def size(self, messages: Sequence[Message], version: int, around: Callable[[], int]) -> int:
        """The estimate alone, to compare one state of the conversation with another. Arguments as for `of`."""
        self._look_at(messages, version, around)
        return around() + self._sum

    def _look_at(self, messages: Sequence[Message], version: int, around: Callable[[], int]) -> None:
        if self._version not in (None, version):
            self._restart(messages, around)

        self._version = version
        self._catch_up(messages)

    def _place(self) -> int | None:
        """How many messages the last usage covers; None when there is none."""
        if self._seen is not None:
            for place in range(len(self._sizes), 0, -1):  # it stands at the end, or near it
                if self._sizes[place - 1][0] is self._seen:
                    return place

        self._seen = None
        return None

    def _restart(self, messages: Sequence[Message], around: Callable[[], int]) -> None:
        """Other messages stand there: what was measured of them is kept, the usage is of a request that is no more."""
        place = self._place()
        if place is not None:
            estimate = around() + sum(size for _, size in self._sizes[:place])
            self._ratio = min(max(self._usage / max(estimate, 1), _LEAST), _MOST)

        known = {id(message): size for message, size in self._sizes}
        self._sizes = [(m, known[id(m)] if id(m) in known else message_tokens(m)) for m in messages]
        self._sum = sum(size for _, size in self._sizes)
        self._seen = None

    def _catch_up(self, messages: Sequence[Message]) -> None:
        sizes = self._sizes
        while sizes and (len(sizes) > len(messages) or sizes[-1][0] is not messages[len(sizes) - 1]):
            self._sum -= sizes.pop()[1]  # the last message has grown: another object stands there

        for message in messages[len(sizes) :]:
            size = message_tokens(message)
            sizes.append((message, size))
            self._sum += size
