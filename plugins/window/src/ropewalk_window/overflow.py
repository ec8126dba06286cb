"""How much has to go when a request does not fit, and what goes first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ropewalk.kits.messages.estimate import message_tokens
from ropewalk.types import Message
from ropewalk_window.trimming import Plan, cut, shorten, trimmed

MOST_REDUCTIONS: Final = 4
"""Reductions of one turn; the last one leaves no more than what has to stay."""

_SHARES: Final = (0.75, 0.5, 0.25, 0.0)
_OF_WINDOW: Final = 0.9


def aim_after(number: int, tokens: int, window: int | None) -> float:
    """Tokens that the request may have after its `number`-th reduction.

    What a request really has is the provider's to say, and an overflow says that it is more than was thought. So each
    reduction takes a share of what is there, whatever the window.
    """
    share = tokens * _SHARES[min(number, MOST_REDUCTIONS) - 1]
    return share if window is None else min(share, window * _OF_WINDOW)


def excess_over(aim: float, tokens: int, messages: Sequence[Message], around: int) -> float:
    """How much has to go for a request of `tokens` to come down to `aim`, in tokens as `message_tokens` counts them."""
    estimate = around + sum(message_tokens(message) for message in messages)
    return (tokens - aim) * estimate / max(tokens, 1)


def after_overflow(
    messages: Sequence[Message], size: int, excess: float, pinned: Collection[int], *, truncates: bool
) -> Plan:
    """Long tool results become short, the oldest first; when that is not enough, the oldest turns go."""
    plan: Plan = list(messages)
    left = shorten(plan, excess, pinned) if truncates else excess
    if left <= 0:
        return plan

    before = _tokens(plan)
    window = trimmed(messages, size, pinned, running=True)
    plan = [None if window[place] is None else message for place, message in enumerate(plan)]
    left -= before - _tokens(plan)
    if left > 0:
        left = cut(plan, left, pinned)

    if left > 0:
        cut(plan, left, pinned, task=False)

    return plan


def before_overflow(messages: Sequence[Message], excess: float, pinned: Collection[int], *, truncates: bool) -> Plan:
    """The oldest turns go; when that is not enough, long tool results become short."""
    plan: Plan = list(messages)
    left = cut(plan, excess, pinned)
    if truncates and left > 0:
        shorten(plan, left, pinned)

    return plan


def _tokens(plan: Plan) -> int:
    return sum(message_tokens(message) for message in plan if message is not None)
