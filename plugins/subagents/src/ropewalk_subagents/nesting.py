"""Who is whose sub-agent at this moment: the runs above the one that is about to start."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

above: Final[ContextVar[tuple[int, ...]]] = ContextVar("ropewalk_agents_above", default=())
"""Identities of the callers of each sub-agent that runs in this context, outermost first."""


def with_caller(caller: object) -> tuple[int, ...]:
    """The runs above a sub-agent that `caller` starts; its length is how deep that is nested."""
    return (*above.get(), id(caller))
