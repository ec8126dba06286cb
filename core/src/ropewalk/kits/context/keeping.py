"""Which messages can be kept together: whole tool turns, user and assistant in turn, a user message first.

All functions take a valid history (see `ropewalk.kits.messages.rules`) and speak of places in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from ropewalk.types import Message


def has_results(message: Message) -> bool:
    """Whether the message answers the tool calls of the one before."""
    return message["role"] == "user" and any("toolResult" in block for block in message["content"])


def has_uses(message: Message) -> bool:
    """Whether the next message answers this one's tool calls."""
    return message["role"] == "assistant" and any("toolUse" in block for block in message["content"])


def first_task(messages: Sequence[Message]) -> int | None:
    """Where the first user message stands that is more than tool results; None when there is none."""
    return next((place for place, message in enumerate(messages) if _is_plain(message)), None)


def newest_turn(messages: Sequence[Message]) -> set[int]:
    """What no reduction of the history may take while a run needs it.

    The last message, with its call if it holds results, and the last message in which the user says something.
    """
    if not messages:
        return set()

    places = {len(messages) - 1}
    for place in range(len(messages) - 1, -1, -1):
        if _says_something(messages[place]):
            places.add(place)
            break

    return closed(messages, places)


def next_cut(messages: Sequence[Message], at: int) -> int:
    """The first place from `at` on at which the history may be cut in two without splitting a tool turn."""
    while 0 < at < len(messages) and has_results(messages[at]):
        at += 1

    return min(max(at, 0), len(messages))


def with_pairs(messages: Sequence[Message], places: Iterable[int]) -> set[int]:
    """The places with the other half of each tool turn."""
    kept = set(places)
    for place in tuple(kept):
        message = messages[place]
        if has_results(message) and place > 0:
            kept.add(place - 1)
        elif has_uses(message) and place + 1 < len(messages):
            kept.add(place + 1)

    return kept


def closed(messages: Sequence[Message], places: Iterable[int]) -> set[int]:
    """The places, and as few others as it takes to make what is kept a valid history.

    Between two that are kept, a message of the other side is kept too: the answer before the second user message, the
    user's words after the first answer. What would begin with an answer begins with the first task instead.
    """
    kept = with_pairs(messages, places)
    if not kept:
        return kept

    start = min(kept)
    if messages[start]["role"] == "assistant":
        task = first_task(messages[:start])
        if task is not None:
            kept.add(task)

    order = sorted(kept)
    for one, other in pairwise(order):
        if other - one > 1 and messages[one]["role"] == messages[other]["role"]:
            kept.add(other - 1 if messages[other]["role"] == "user" else one + 1)

    return kept


def _is_plain(message: Message) -> bool:
    return message["role"] == "user" and not has_results(message)


def _says_something(message: Message) -> bool:
    blocks: Sequence[Any] = message["content"]
    return message["role"] == "user" and any("toolResult" not in b and "cachePoint" not in b for b in blocks)
