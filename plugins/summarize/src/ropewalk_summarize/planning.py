"""Which messages a summary takes the place of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ropewalk.kits.context import first_task, newest_turn, pinned_places
from ropewalk.kits.context.folding import Folding, best_cut, fold
from ropewalk.kits.context.keeping import has_results
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk.types import Message

_TASK_SHARE: Final = 0.1
_TASK_TOKENS: Final = 2_000
_SUMMARY_TOKENS: Final = 800


@dataclass(frozen=True, slots=True)
class Excess:
    """How many tokens have to go.

    Attributes:
        needed: At least; when the usual share brings that, it is enough.
        aim: Otherwise; more than `needed`, so that it is not the same again after the next turn.
    """

    needed: float = 0.0
    aim: float = 0.0


NONE: Final = Excess()


def plan(
    messages: Sequence[Message],
    *,
    ratio: float,
    recent: int,
    pin_first: int,
    window: int | None = None,
    excess: Excess = NONE,
) -> Folding | None:
    """Plans the next summary.

    Args:
        messages: The conversation.
        ratio: The share of the messages to summarize.
        recent: Messages at the end that stay.
        pin_first: Messages at the start that count as pinned.
        window: The model's window in tokens, if it is known.
        excess: What has to go; to reach that, more than `ratio` is summarized, and fewer than `recent` stay.

    Returns:
        The plan; None when too few messages are left.
    """
    size = len(messages)
    kept, front = _kept(messages, pin_first, window)
    newest = size - 2 if size > 1 and has_results(messages[-1]) else size - 1
    limit = min(size - recent, newest)
    cut = best_cut(messages, max(1, int(size * ratio)), limit) if limit > 0 else 0
    found = None
    while cut:
        found = fold(messages, cut, kept, front)
        further = best_cut(messages, cut + 1, limit)
        if found is not None or further <= cut:
            break

        cut = further

    if excess.aim <= 0 or (found is not None and _gain(found) >= excess.needed):
        return found

    while found is None or _gain(found) < excess.aim:
        further = best_cut(messages, cut + 1, newest)
        if further <= cut:
            break

        cut = further
        found = fold(messages, cut, kept, front) or found

    return found


def _gain(folding: Folding) -> float:
    """About how many tokens fewer there will be."""
    return folding.tokens - min(folding.tokens // 4, _SUMMARY_TOKENS)


def _kept(messages: Sequence[Message], pin_first: int, window: int | None) -> tuple[set[int], int]:
    """The places that stay, and how many of them stand in front of a summary."""
    pinned = pinned_places(messages, pin_first)
    front = 0
    while front in pinned:
        front += 1

    task = first_task(messages)
    most = _TASK_TOKENS if window is None else window * _TASK_SHARE
    if task is not None and message_tokens(messages[task]) <= most:
        pinned.add(task)

    return pinned | newest_turn(messages), front
