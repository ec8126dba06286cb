"""What a run tells its followers, typed inside, dicts with the seeds' keys outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ropewalk.kits.json_values import text_of
from ropewalk.types import Message, StreamEvent, ToolUse

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult
    from ropewalk.kits.suspension import Interrupt


class Event:
    """Base of all events. `as_dict` is what `stream_async` yields and a callback handler gets as keywords."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The event under the seeds' keys."""
        raise NotImplementedError(f"{type(self).__name__} has no dict form: give it an as_dict method")


# -- streamed pieces: on_delta, may run ahead of the consumer ----------------------------------------------------


class Delta(Event):
    """A piece of a model's stream that carries content; `raw` is the provider's event."""

    __slots__ = ("raw",)

    def __init__(self, raw: StreamEvent) -> None:
        self.raw = raw


class RawDelta(Delta):
    """A stream event without content of its own (starts, stops, usage)."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.raw}


class TextDelta(Delta):
    """A piece of the answer's text."""

    __slots__ = ("text",)

    def __init__(self, raw: StreamEvent, text: str) -> None:
        self.raw = raw
        self.text = text

    def as_dict(self) -> dict[str, Any]:
        return {"data": self.text, "delta": {"text": self.text}}


class TextEnded(Delta):
    """A block of the answer's text is complete."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        return {"data": "", "complete": True, "delta": {"text": ""}}


class ToolInputDelta(Delta):
    """A piece of a tool's arguments."""

    __slots__ = ("_count", "_parts", "_start", "delta")

    def __init__(self, raw: StreamEvent, delta: dict[str, Any], start: dict[str, Any], parts: list[Any]) -> None:
        self.raw = raw
        self.delta = delta
        self._start = start
        self._parts = parts
        self._count = len(parts)

    @property
    def tool_use(self) -> dict[str, Any]:
        """Id, name, and under `input` the arguments' text so far, not yet parsed; joined when somebody looks."""
        text = "".join(p for p in self._parts[: self._count] if isinstance(p, str))
        return {"toolUseId": self._start.get("toolUseId"), "name": self._start.get("name"), "input": text}

    def as_dict(self) -> dict[str, Any]:
        return {"type": "tool_use_stream", "delta": self.delta, "current_tool_use": self.tool_use}


class ReasoningDelta(Delta):
    """A piece of thinking: text, signature or redacted bytes."""

    __slots__ = ("delta",)

    _KEYS: ClassVar = {
        "text": "reasoningText",
        "signature": "reasoning_signature",
        "redactedContent": "reasoningRedactedContent",
    }

    def __init__(self, raw: StreamEvent, delta: dict[str, Any]) -> None:
        self.raw = raw
        self.delta = delta

    def as_dict(self) -> dict[str, Any]:
        piece = self.delta["reasoningContent"]
        return {
            **{self._KEYS[k]: v for k, v in piece.items() if k in self._KEYS},
            "delta": self.delta,
            "reasoning": True,
        }


class CitationDelta(Delta):
    """A source that the model cites."""

    __slots__ = ("delta",)

    def __init__(self, raw: StreamEvent, delta: dict[str, Any]) -> None:
        self.raw = raw
        self.delta = delta

    def as_dict(self) -> dict[str, Any]:
        return {"citation": self.delta["citation"], "delta": self.delta}


def delta_of(raw: StreamEvent) -> Delta:
    """The typed form of an event that says everything itself: all but pieces of a tool's arguments."""
    delta = raw["contentBlockDelta"].get("delta", {}) if "contentBlockDelta" in raw else {}
    if "text" in delta:
        return TextDelta(raw, delta["text"])

    if "reasoningContent" in delta:
        return ReasoningDelta(raw, delta)

    return CitationDelta(raw, delta) if "citation" in delta else RawDelta(raw)


class ToolStreamed(Event):
    """An intermediate value of a running tool."""

    __slots__ = ("data", "tool_use")

    def __init__(self, tool_use: ToolUse, data: Any) -> None:
        self.tool_use = tool_use
        self.data = data

    def as_dict(self) -> dict[str, Any]:
        return {"type": "tool_stream", "tool_stream_event": {"tool_use": self.tool_use, "data": self.data}}


# -- boundaries: on_event, the run waits until the consumer has seen them ----------------------------------------


class RunStarted(Event):
    """An invocation was admitted."""

    __slots__ = ("run_id",)

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def as_dict(self) -> dict[str, Any]:
        return {"init_event_loop": True}


class CycleStarted(Event):
    """A cycle (model, then tools) begins; `index` counts from 0."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def as_dict(self) -> dict[str, Any]:
        return {"start": True, "start_event_loop": True}


class AttemptDiscarded(Event):
    """What was streamed in attempt `attempt` does not count; the turn starts again after `delay` seconds."""

    __slots__ = ("attempt", "delay", "reason")

    def __init__(self, attempt: int, reason: str, delay: float = 0.0) -> None:
        self.attempt = attempt
        self.reason = reason
        self.delay = delay

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"attempt_discarded": {"attempt": self.attempt, "reason": self.reason}}
        return {**told, "event_loop_throttled_delay": self.delay} if self.delay > 0 else told


class MessageAdded(Event):
    """A message of the model, or the message with the tools' results, is in the history."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message

    def as_dict(self) -> dict[str, Any]:
        return {"message": self.message}


class ToolPaused(Event):
    """A tool call waits for answers."""

    __slots__ = ("interrupts", "tool_use")

    def __init__(self, tool_use: ToolUse, interrupts: Sequence[Interrupt]) -> None:
        self.tool_use = tool_use
        self.interrupts = interrupts

    def as_dict(self) -> dict[str, Any]:
        return {"tool_interrupt_event": {"tool_use": self.tool_use, "interrupts": list(self.interrupts)}}


class ToolsStarting(Event):
    """The tools of one message are about to run. A follower that cancels on seeing it is obeyed before any runs."""

    __slots__ = ("tool_uses",)

    def __init__(self, tool_uses: list[ToolUse]) -> None:
        self.tool_uses = tool_uses

    def as_dict(self) -> dict[str, Any]:
        return {"tools_starting": self.tool_uses}


class RunFailed(Event):
    """The run ends in an error, which the caller gets."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def as_dict(self) -> dict[str, Any]:
        return {"force_stop": True, "force_stop_reason": text_of(self.error)}


class StructuredOutputFilled(Event):
    """The run has its structured output; the result follows."""

    __slots__ = ("output",)

    def __init__(self, output: Any) -> None:
        self.output = output

    def as_dict(self) -> dict[str, Any]:
        return {"structured_output": self.output}


class RunEnded(Event):
    """The run ends with a result."""

    __slots__ = ("result",)

    def __init__(self, result: AgentResult) -> None:
        self.result = result

    def as_dict(self) -> dict[str, Any]:
        return {"result": self.result}


def dicts_of(event: Any) -> tuple[dict[str, Any], ...]:
    """What consumers see of an event: a streamed piece with content is preceded by the provider's own event."""
    if isinstance(event, dict):
        event = delta_of(event)

    if not isinstance(event, Delta):
        return (event.as_dict(),)

    return ({"event": event.raw},) if type(event) is RawDelta else ({"event": event.raw}, event.as_dict())
