"""What differs between two states of one conversation; messages are compared as objects, not by content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ropewalk.types import ContentBlock, Message


class Mark(NamedTuple):
    """A state of the history's tail that `rollback` returns to."""

    length: int
    last: Message | None
    fix: Message | None


def common_start(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many messages at the start are the same objects."""
    same, most = 0, min(len(one), len(other))
    while same < most and one[same] is other[same]:
        same += 1

    return same


def added(base: Sequence[Message], grown: Sequence[Message]) -> list[Message]:
    """What `grown` has more than `base`, from which it grew."""
    same = common_start(base, grown)
    block = list(grown[same:])
    if same < len(base) and block:  # the first input was merged into the last user message
        known = base[same]["content"]
        block[0] = {**block[0], "content": [b for b in block[0]["content"] if not any(b is k for k in known)]}

    return block


def redacted(content: Sequence[ContentBlock], text: str) -> list[ContentBlock]:
    """A user message's content with all texts replaced; results stay the results of their uses."""
    kept: list[ContentBlock] = []
    for block in content:
        result = block.get("toolResult")
        if result is not None:
            kept.append({"toolResult": {**result, "content": [{"text": text}]}})

    return kept or [{"text": text}]
