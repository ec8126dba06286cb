"""What can be limited, and the check of what a caller gave."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, Final, TypedDict


class Limits(TypedDict, total=False):
    """Upper limits of one call of an agent; leave out what has none.

    They are looked at when a turn of the model is about to begin, so a single turn may overshoot them. `turns` and
    `tool_calls` count the agent's own; the others also count the agents that its tools call.

    Attributes:
        turns: Turns of the model; attempts that were repeated are not turns.
        output_tokens: Tokens that models wrote, those of repeated attempts included.
        total_tokens: Tokens that models read and wrote.
        seconds: Time since the call began.
        tool_calls: Tools that were run.
        cost: In the unit of the prices in the plugin's options.
    """

    turns: int
    output_tokens: int
    total_tokens: int
    seconds: float
    tool_calls: int
    cost: float


ORDER: Final = ("turns", "total_tokens", "output_tokens", "seconds", "tool_calls", "cost")
"""Which limit is told when several are reached: the first of these."""

MEASURED: Final = frozenset({"seconds", "cost"})
"""Limits that need not be whole numbers."""

OWN: Final = frozenset({"turns", "tool_calls"})
"""What is not counted for the caller when the agents that its tools call spend it, unless a `Budget` is shared."""


def checked_limits(given: Mapping[str, Any], what: str) -> dict[str, float]:
    """The limits, if they are such.

    Args:
        given: What the caller gave.
        what: How the caller wrote it, for the error.

    Raises:
        TypeError: A key is no limit, or a value is no positive number of its kind.
    """
    for name, value in given.items():
        if name not in ORDER:
            near = difflib.get_close_matches(str(name), ORDER, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise TypeError(f"{what}: there is no limit {name!r}: {hint}the limits are {', '.join(ORDER)}")

        _check(name, value, what)

    return dict(given)


def _check(name: str, value: Any, what: str) -> None:
    kinds: Any = int | float if name in MEASURED else int
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value) or value <= 0:
        kind = "number" if name in MEASURED else "whole number"
        raise TypeError(f"{what}: {name}={value!r} is no limit: give a {kind} above 0, or leave it out")
