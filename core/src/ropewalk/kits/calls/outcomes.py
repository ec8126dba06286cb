"""What the chains around model calls, tools and invocations carry and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.model import ModelRequest
from ropewalk.types import ContentBlock, Message, StopReason, ToolResult, Usage

NO_USAGE: Final[Usage] = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


class ModelOutcome:
    """What one attempt at a model call came to.

    Attributes:
        message: The assistant message, complete, or as far as it came when the run was cancelled.
        stop_reason: Why the model stopped; `"cancelled"` when the run was cancelled.
        usage: Tokens of this attempt.
        latency_ms: Milliseconds as the provider reports them, 0 when it does not.
        input_errors: For each tool use whose arguments are no JSON object, its id and what is wrong.
        redact_input: Text that replaces the last user message's text, when a guardrail says so.
    """

    __slots__ = ("input_errors", "latency_ms", "message", "redact_input", "stop_reason", "usage")

    def __init__(
        self,
        message: Message,
        stop_reason: StopReason,
        usage: Usage = NO_USAGE,
        latency_ms: int = 0,
        input_errors: dict[str, str] | None = None,
        redact_input: str | None = None,
    ) -> None:
        self.message = message
        self.stop_reason = stop_reason
        self.usage = usage
        self.latency_ms = latency_ms
        self.input_errors = input_errors
        self.redact_input = redact_input

    @classmethod
    def saying(cls, text: str) -> ModelOutcome:
        """An answer that no model gave, such as the text of a denial."""
        return cls({"role": "assistant", "content": [{"text": text}]}, "end_turn")

    @classmethod
    def nothing(cls) -> ModelOutcome:
        """What a cancelled call comes to when nothing was said."""
        return cls({"role": "assistant", "content": []}, "cancelled")

    def withheld(self, text: str) -> ModelOutcome:
        """The same call with a text in the answer's place; with nothing there when it was cancelled."""
        content: list[ContentBlock] = [] if self.stop_reason == "cancelled" else [{"text": text}]
        stop = self.stop_reason if self.stop_reason == "cancelled" else "end_turn"
        return ModelOutcome({"role": "assistant", "content": content}, stop, self.usage, self.latency_ms)

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, for `ModelOutcome(**them)`."""
        return {name: getattr(self, name) for name in ModelOutcome.__slots__}  # not those of a subclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Asks for another attempt at the model call; the answer so far is dropped, its usage counts.

    Attributes:
        reason: Shown to followers of the run.
        request: The request of the next attempt; None repeats the same.
        feedback: Merged into the last user message before the next attempt, and kept in the history.
    """

    reason: str
    request: ModelRequest | None = None
    feedback: tuple[ContentBlock, ...] = ()


class ToolsOutcome:
    """What the tools of one message came to.

    Attributes:
        results: One result per tool use, in the order of the request.
        end_turn: Text or blocks of a final assistant message that ends the run without another model call, or None.
        stop: Ends the run once the results are stored, or None.
    """

    __slots__ = ("end_turn", "results", "stop")

    def __init__(
        self, results: list[ToolResult], end_turn: str | list[ContentBlock] | None = None, stop: Stop | None = None
    ) -> None:
        self.results = results
        self.end_turn = end_turn
        self.stop = stop


@dataclass(frozen=True, slots=True)
class Failure:
    """A model call that failed, for `decide_retry`.

    Attributes:
        error: What was raised.
        attempt: 1 for the first attempt at this turn.
        streamed: Whether followers had already seen a part of the answer.
        waited: Seconds waited so far between the attempts at this turn.
    """

    error: Exception
    attempt: int
    streamed: bool
    waited: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends the run at the top of a cycle.

    Attributes:
        stop_reason: The result's stop reason, such as `"limit_turns"`.
        state: Facts for whoever reads the result, JSON only.
    """

    stop_reason: StopReason
    state: dict[str, Any] = field(default_factory=dict)
