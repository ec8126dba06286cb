"""A question of a hook, a tool or a handler to whoever called the agent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One open question.

    Attributes:
        id: Names it in the answer; the same when the place that asks is reached again.
        name: The name that the asker gave it.
        reason: What the asker wants to tell, JSON only.
        response: The answer; None while it is open.
    """

    id: str
    name: str
    reason: Any = None
    response: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The question as a JSON object."""
        return {"id": self.id, "name": self.name, "reason": self.reason, "response": self.response}


class Suspend(BaseException):  # no error: `except Exception` in a hook or a tool must not swallow a pause
    """Pauses the run. Raised by `interrupt(...)`; hooks and tools let it pass.

    Attributes:
        interrupts: The questions.
        memo: What a paused tool call wants to find again in `call.memo` when it goes on, JSON only.
    """

    def __init__(self, interrupts: Sequence[Interrupt], memo: Any = None) -> None:
        super().__init__(", ".join(each.name for each in interrupts))
        self.interrupts = tuple(interrupts)
        self.memo = memo


def interrupt_id(where: str, name: str, *parts: str) -> str:
    """The id of a question: where it was asked, of what, and under which name.

    Args:
        where: The kind of place, such as `"before_tool_call"`.
        name: The asker's name for the question.
        parts: What makes the place unique, such as the id of the tool use.
    """
    return ":".join(("v1", where, *parts, str(uuid.uuid5(uuid.NAMESPACE_OID, name))))
