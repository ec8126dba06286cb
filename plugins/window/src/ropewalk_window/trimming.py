"""What goes when the history is longer than the window, in messages or in tokens."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from ropewalk.kits.context import closed, first_task, newest_turn
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk.types import Message
from ropewalk_window.shortening import shortened

Plan: TypeAlias = list[Message | None]
"""For each message of the history what stands there afterwards: itself, a shorter one, or None."""

_ADDED: Final = 3
"""Closing what is kept adds up to that many messages, which the first guess does not know of."""


def trimmed(messages: Sequence[Message], size: int, pinned: Collection[int], *, running: bool) -> Plan:
    """Keeps the newest messages, `size` in all where whole turns and pins allow it.

    Args:
        messages: The conversation.
        size: Messages to keep; 0 drops all that is not pinned.
        pinned: Where the pinned messages stand.
        running: Whether the next request needs the newest turn even when `size` is 0.
    """
    if len(messages) <= size:
        return list(messages)

    if size == 0 and not running:
        return _kept(messages, closed(messages, pinned))

    floor = _floor(messages, pinned, size)
    return _kept(messages, _newest(messages, size, floor))


def _floor(messages: Sequence[Message], pinned: Collection[int], size: int) -> set[int]:
    """What stays whatever goes: pins and the newest turn, and the first task where there is room for it."""
    needed = {*pinned, *newest_turn(messages)}
    task = first_task(messages)
    if task is not None:
        floor = closed(messages, {*needed, task})
        if len(floor) <= size:
            return floor

    return closed(messages, needed)


def _newest(messages: Sequence[Message], size: int, floor: set[int]) -> set[int]:
    """The floor, and as many of the newest messages as there is room for."""
    if len(floor) >= size:
        return floor

    start = len(messages) - size
    while start < len(messages):
        kept = closed(messages, floor.union(range(start, len(messages))))
        over = len(kept) - size
        if over <= 0:
            return kept

        start += max(1, over - _ADDED)

    return floor


def cut(messages: Plan, excess: float, pinned: Collection[int], *, task: bool = True) -> float:
    """Drops the oldest turns until their tokens come to `excess`; returns what is left of it.

    Args:
        messages: Changed in place.
        excess: Tokens, as `message_tokens` counts.
        pinned: Where the pinned messages stand, in `messages`.
        task: Whether the first task stays.
    """
    places = [place for place, message in enumerate(messages) if message is not None]
    present = [message for message in messages if message is not None]
    pins = {at for at, place in enumerate(places) if place in pinned}
    first = first_task(present) if task else None
    floor = closed(present, {*pins, *newest_turn(present), *(() if first is None else (first,))})
    if len(floor) == len(present):
        return excess

    sizes = [message_tokens(message) for message in present]
    kept, start, gained = set(range(len(present))), 0, 0.0
    while start < len(present) and (gained < excess or len(kept) == len(present)):
        missing = excess - gained
        while start < len(present) and missing >= 0:
            missing -= 0 if start in floor else sizes[start]
            start += 1

        kept = closed(present, floor.union(range(start, len(present))))
        gained = float(sum(size for at, size in enumerate(sizes) if at not in kept))

    for at, place in enumerate(places):
        if at not in kept:
            messages[place] = None

    return excess - gained


def shorten(messages: Plan, excess: float, pinned: Collection[int]) -> float:
    """Makes tool results short, the oldest first, until `excess` tokens are gained; returns what is left of it."""
    for place, message in enumerate(messages):
        if excess <= 0:
            break

        if message is not None and place not in pinned and message["role"] == "user":
            short = shortened(message)
            if short is not message:
                messages[place] = short
                excess -= message_tokens(message) - message_tokens(short)

    return excess


def _kept(messages: Sequence[Message], places: Collection[int]) -> Plan:
    return [message if place in places else None for place, message in enumerate(messages)]
