"""What differs between two states of one conversation; messages are compared as objects, not by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ropewalk.types import ContentBlock, Message


class Mark(NamedTuple):
    """A state of the history's tail that `rollback` returns to."""

    length: int
    before: Message | None
    last: Message | None
    fix: Message | None

    @classmethod
    def of(cls, messages: Sequence[Message], fixes: Mapping[int, Message]) -> Mark:
        """The mark of a conversation's tail."""
        last, before = (messages[-1] if messages else None), (messages[-2] if len(messages) > 1 else None)
        return cls(len(messages), before, last, fixes.get(len(messages) - 1))

    def is_below(self, messages: Sequence[Message]) -> bool:
        """Whether the conversation has only grown since: nothing was taken out, or all was put back."""
        length = self.length
        if len(messages) < length or (length > 1 and messages[length - 2] != self.before):
            return False

        if self.last is None or messages[length - 1] == self.last:
            return True

        now = messages[length - 1]["content"]  # what was merged into the last message stands beside its blocks
        return all(any(block == other for other in now) for block in self.last["content"])


def common_start(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many messages at the start are the same objects."""
    same, most = 0, min(len(one), len(other))
    while same < most and one[same] is other[same]:
        same += 1

    return same


def unchanged_ends(
    old: Sequence[Message], new: Sequence[Message], old_ids: Sequence[int], new_ids: Sequence[int]
) -> tuple[int, int]:
    """How many messages at the start and at the end are the same objects under the same ids."""
    most = min(len(old), len(new))
    start = end = 0
    while start < most and old[start] is new[start] and old_ids[start] == new_ids[start]:
        start += 1

    while end < most - start and old[-1 - end] is new[-1 - end] and old_ids[-1 - end] == new_ids[-1 - end]:
        end += 1

    return start, end


def added(base: Sequence[Message], grown: Sequence[Message]) -> list[Message]:
    """What `grown` has more than `base`, from which it grew."""
    same = common_start(base, grown)
    block = list(grown[same:])
    if same < len(base) and block:  # the first input was merged into the last user message
        known = base[same]["content"]
        block[0] = {**block[0], "content": [b for b in block[0]["content"] if not any(b is k for k in known)]}

    return block


def since(born: int, ids: Sequence[int], messages: Sequence[Message]) -> list[Message]:
    """The messages from the one with the id `born` on; when that is gone, those behind all that are older.

    What managers have made of older messages meanwhile has new ids too, and is not among them.
    """
    older = 0
    for place, number in enumerate(ids):
        if number == born:
            return list(messages[place:])

        older = place + 1 if number < born else older

    return list(messages[older:])


def redacted(content: Sequence[ContentBlock], text: str) -> list[ContentBlock]:
    """A user message's content with all texts replaced; results stay the results of their uses."""
    kept: list[ContentBlock] = []
    for block in content:
        result = block.get("toolResult")
        if result is not None:
            kept.append({"toolResult": {**result, "content": [{"text": text}]}})

    return kept or [{"text": text}]
