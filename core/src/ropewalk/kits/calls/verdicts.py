"""What `intervene` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Moment: TypeAlias = Literal[
    "before_invocation", "before_model_call", "after_model_call", "before_tool_call", "after_tool_call"
]
"""Where gates stand. The subject is an Invocation, a ModelRequest, a ModelOutcome, a ToolCall or a ToolResult."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The subject must not pass: what follows does not happen, or its outcome is withheld. The reason is told."""

    reason: str
    text: str | None = None
    """What stands in the subject's place; `DENIED: ` and the reason when not given."""


@dataclass(frozen=True, slots=True)
class Guide:
    """At a gate of the model: the feedback joins the last user message; an answer is dropped and asked for again."""

    feedback: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Another subject of the same kind takes the place of the one that was shown."""

    subject: Any
    reason: str = ""


Verdict: TypeAlias = Refuse | Replace | Guide
