"""Which messages a summary takes the place of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ropewalk.kits.context import newest_turn, pinned_places
from ropewalk.kits.context.folding import Folding, best_cut, first_words, fold, unfolded
from ropewalk.kits.context.keeping import has_results
from ropewalk.kits.messages.estimate import block_tokens, message_tokens
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
    gains = _gains(messages, kept)
    newest = size - 2 if size > 1 and has_results(messages[-1]) else size - 1
    limit = min(size - recent, newest)
    cut = next((at for at in _cuts(messages, max(1, int(size * ratio)), limit) if gains[at] > 0), 0)
    if excess.aim > 0 and not (cut and gains[cut] >= excess.needed):
        for further in _cuts(messages, cut + 1, newest):
            cut = further if further > cut and gains[further] > 0 else cut
            if gains[cut] >= excess.aim:
                break

    return fold(messages, cut, kept, front) if cut else None


def _cuts(messages: Sequence[Message], wanted: int, most: int) -> Iterator[int]:
    """The places to cut at, the best first (see `best_cut`), then those behind it; one walk for all of them."""
    first = best_cut(messages, wanted, most) if most > 0 else 0
    if not first:
        return

    yield first
    end = len(messages)
    later = [at for at in range(first + 1, min(most, end) + 1) if at == end or not has_results(messages[at])]
    standing = [at for at in later if at < end and messages[at]["role"] == "assistant"]
    yield from standing
    yield from (at for at in later if at > (standing[-1] if standing else first))


def _gains(messages: Sequence[Message], kept: Collection[int]) -> list[int]:
    """For each place about how many tokens fewer there will be after a cut; 0 where nothing would be summarized."""
    gains, tokens, material = [0], 0, False
    for place, message in enumerate(messages):
        summary, rest = unfolded(message)
        tokens += 0 if summary is None else block_tokens({"text": summary})
        if rest is not None and place not in kept:
            tokens, material = tokens + message_tokens(rest), True

        gains.append(max(tokens - min(tokens // 4, _SUMMARY_TOKENS), 1) if material else 0)

    return gains


def _kept(messages: Sequence[Message], pin_first: int, window: int | None) -> tuple[set[int], int]:
    """The places that stay, and how many of them stand in front of a summary."""
    pinned = pinned_places(messages, pin_first)
    front = 0
    while front in pinned:
        front += 1

    task = first_words(messages)
    said = None if task is None else unfolded(messages[task])[1]  # a summary may stand in the same message
    most = _TASK_TOKENS if window is None else window * _TASK_SHARE
    if task is not None and said is not None and message_tokens(said) <= most:
        pinned.add(task)

    return pinned | newest_turn(messages), front
