"""What differs between two states of one conversation; messages are compared as objects, not by content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ropewalk.types import ContentBlock, Message


class Mark(NamedTuple):
    """A state of the history's tail that `rollback` returns to."""

    length: int
    before: Message | None
    last: Message | None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Mark:
        """The mark of a conversation's tail."""
        last, before = (messages[-1] if messages else None), (messages[-2] if len(messages) > 1 else None)
        return cls(len(messages), before, last)

    def is_below(self, messages: Sequence[Message]) -> bool:
        """Whether the conversation has only grown since: nothing was taken out, or all was put back."""
        length = self.length
        if len(messages) < length or (length > 1 and messages[length - 2] != self.before):
            return False

        if self.last is None or messages[length - 1] == self.last:
            return True

        now = messages[length - 1]["content"]  # what was merged into the last message stands beside its blocks
        return all(any(block == other for other in now) for block in self.last["content"])


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


def added(base: Sequence[Message], born: int, ids: Sequence[int], messages: Sequence[Message]) -> list[Message]:
    """What a branch of `base` has come to: the messages from the one with the id `born` on, and what was merged below.

    When that one is gone, those behind all that are older. What managers have made of older messages meanwhile has new
    ids too, and is not among them.
    """
    start = ids.index(born) if born in ids else max((i + 1 for i, number in enumerate(ids) if number < born), default=0)
    block = list(messages[start:])
    if base and start and (more := _behind(base[-1], messages[start - 1])):
        block.insert(0, more)
    elif base and block:
        block[0] = _behind(base[-1], block[0]) or block[0]

    return block


def _behind(last: Message, grown: Message) -> Message | None:
    """The part of a message that was merged into `last`; None when it did not grow from that."""
    known, content = last["content"], grown["content"]
    if not known or len(content) <= len(known) or any(a is not b for a, b in zip(known, content, strict=False)):
        return None

    return {**grown, "content": content[len(known) :]}


def redacted(content: Sequence[ContentBlock], text: str) -> list[ContentBlock]:
    """A user message's content with all texts replaced; results stay the results of their uses."""
    kept: list[ContentBlock] = []
    for block in content:
        result = block.get("toolResult")
        if result is not None:
            kept.append({"toolResult": {**result, "content": [{"text": text}]}})

    return kept or [{"text": text}]
