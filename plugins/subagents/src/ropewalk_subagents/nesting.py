"""Who is whose sub-agent at this moment: the runs above the one that is about to start."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.tools import ToolCall

above: Final[ContextVar[tuple[int, ...]]] = ContextVar("ropewalk_agents_above", default=())
"""Identities of the callers of each sub-agent that runs in this context, outermost first."""

outermost: Final[ContextVar[tuple[ReferenceType[Agent], str] | None]] = ContextVar("ropewalk_outermost", default=None)
"""The agent above all sub-agents that run in this context, and the id of its tool use that they serve."""


def outermost_of(call: ToolCall) -> tuple[ReferenceType[Agent], str]:
    """The agent and the tool use above all, of which a call of a sub-agent is part."""
    return outermost.get() or (ref(call.agent), call.tool_use["toolUseId"])


def with_caller(caller: object) -> tuple[int, ...]:
    """The runs above a sub-agent that `caller` starts; its length is how deep that is nested."""
    return (*above.get(), id(caller))
