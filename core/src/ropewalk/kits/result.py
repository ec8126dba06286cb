"""What an invocation returns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.kits.json_values import strict_json
from ropewalk.kits.messages.rules import checked_message
from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.types import Message, StopReason

_TYPE: Final = "agent_result"


@dataclass(slots=True)
class AgentResult:
    """The end of one invocation.

    Attributes:
        stop_reason: Why it ended, such as `"end_turn"` or `"cancelled"`.
        message: The last assistant message; a synthetic one when the model said nothing.
        metrics: Counts and durations of this invocation alone.
        state: What hooks left for the caller.
        interrupts: Questions that wait for an answer, when the stop reason is `"interrupt"`.
        structured_output: The filled pydantic model, when one was asked for.
        checkpoint: Where to go on, when the stop reason is `"checkpoint"`.
    """

    stop_reason: StopReason
    message: Message
    metrics: EventLoopMetrics
    state: Any = field(default_factory=dict)
    interrupts: Sequence[Any] | None = None
    structured_output: Any = None
    checkpoint: Any = None

    def __str__(self) -> str:
        """The answer's text, each block followed by a newline; structured output as JSON when there is one."""
        if self.interrupts:
            return json.dumps([i.to_dict() if hasattr(i, "to_dict") else i for i in self.interrupts])

        if self.structured_output is not None:
            return _as_json(self.structured_output)

        return "".join(f"{text}\n" for text in _texts(self.message))

    def to_dict(self) -> dict[str, Any]:
        """Stop reason, message and checkpoint as JSON; bytes are base64 text. The rest belongs to the process."""
        checkpoint = self.checkpoint.to_dict() if hasattr(self.checkpoint, "to_dict") else self.checkpoint
        plain = {"type": _TYPE, "stop_reason": self.stop_reason, "message": self.message, "checkpoint": checkpoint}
        return dict(strict_json(plain))

    @classmethod
    def from_dict(cls, value: Any) -> AgentResult:
        """The result of a dict that `to_dict` made, with empty metrics.

        Raises:
            ValueError: It is none.
        """
        if not isinstance(value, dict) or value.get("type") != _TYPE or "stop_reason" not in value:
            raise ValueError(f'an AgentResult is a dict of type "{_TYPE}": pass what AgentResult.to_dict() gave')

        message = checked_message(value.get("message"), "message")
        return cls(value["stop_reason"], message, EventLoopMetrics(), checkpoint=value.get("checkpoint"))


def _as_json(value: Any) -> str:
    """JSON of a pydantic model as the model writes it, and of a list, dataclass or plain value."""
    own = getattr(value, "model_dump_json", None)
    return str(own()) if own is not None else json.dumps(strict_json(value), ensure_ascii=False)


def _texts(message: Message) -> list[str]:
    texts: list[str] = []
    for block in message["content"]:
        if "text" in block:
            texts.append(block["text"])
        elif "citationsContent" in block:
            texts.extend(piece["text"] for piece in block["citationsContent"].get("content", []) if "text" in piece)

    return texts
