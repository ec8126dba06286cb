"""Compression before the window is full: `proactive_compression` of the managers."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

from ropewalk.kits.calls.edits import ContextRequest

logger = logging.getLogger("ropewalk.context")

DEFAULT_THRESHOLD: Final = 0.7
UNKNOWN_WINDOW: Final = 200_000
"""Tokens that are assumed of a model whose window nobody knows."""

_KEY: Final = "compression_threshold"
_assumed: set[str] = set()


def threshold_of(value: Any, owner: str) -> float | None:
    """The share of the window from which on a manager compresses; None for only when a request does not fit.

    Args:
        value: None or False, True for 0.7, or `{"compression_threshold": share}` with a share in (0, 1].
        owner: Whose parameter it is, for the error.

    Raises:
        ValueError: It is none of these.
    """
    if value is None or value is False:
        return None

    if value is True:
        return DEFAULT_THRESHOLD

    if isinstance(value, Mapping) and set(value) <= {_KEY}:
        share = value.get(_KEY, DEFAULT_THRESHOLD)
        if isinstance(share, int | float) and not isinstance(share, bool) and math.isfinite(share) and 0 < share <= 1:
            return float(share)

    raise ValueError(
        f'{owner}: proactive_compression={value!r}: give True (for {DEFAULT_THRESHOLD}), {{"{_KEY}": a share of the '
        "window above 0 and up to 1}, or None"
    )


def window_of(request: ContextRequest, who: str) -> int:
    """The model's window, or 200,000 tokens with one warning when nobody knows it."""
    if request.window is not None:
        return request.window

    if who not in _assumed:
        _assumed.add(who)
        logger.warning(
            "plugin %r compresses at a share of the model's context window, which is not known: %d tokens are assumed; "
            "set context_window_limit (or context_window) of the model",
            who, UNKNOWN_WINDOW,
        )  # fmt: skip

    return UNKNOWN_WINDOW


def is_due(request: ContextRequest, threshold: float | None, who: str) -> bool:
    """Whether the next request has reached the threshold."""
    return threshold is not None and request.tokens >= threshold * window_of(request, who)
