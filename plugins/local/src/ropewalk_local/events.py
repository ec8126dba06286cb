"""Turns the runtime's chunks into the kernel's stream events."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import IncompleteStreamError
from ropewalk_local.answer import Piece, ReplyDecoder, Text, ToolInput, ToolStart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropewalk.types import StreamEvent, Usage

_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"}


class EventWriter:
    """Writes the events of one answer.

    Args:
        decoder: Reads the reply's JSON; None when the reply is plain text.
    """

    def __init__(self, decoder: ReplyDecoder | None) -> None:
        self._decoder = decoder
        self._index = -1
        self._open: str | None = None
        self._finish = ""
        self._usage: Usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}

    def start(self) -> StreamEvent:
        """The first event."""
        return {"messageStart": {"role": "assistant"}}

    def chunk(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        """The events of one chunk."""
        if usage := chunk.get("usage"):
            self._usage = {
                "inputTokens": usage["prompt_tokens"],
                "outputTokens": usage["completion_tokens"],
                "totalTokens": usage["total_tokens"],
            }

        for choice in chunk.get("choices", ()):
            delta = choice.get("delta", {})
            if thought := delta.get("reasoning_content"):
                yield from self._delta("thinking", {"reasoningContent": {"text": thought}})

            if content := delta.get("content"):
                pieces: list[Piece] = self._decoder.feed(content) if self._decoder else [Text(content)]
                for piece in pieces:
                    yield from self._piece(piece)

            self._finish = choice.get("finish_reason") or self._finish

    def end(self, latency_ms: int) -> Iterator[StreamEvent]:
        """The last events.

        Raises:
            IncompleteStreamError: The runtime never said why the model stopped.
        """
        if not self._finish:
            raise IncompleteStreamError("The local model's runtime ended in the middle of an answer: try again.")

        if self._index < 0:
            yield from self._start("text", {})

        yield from self._stop()
        yield {"messageStop": {"stopReason": self._stop_reason()}}
        yield {"metadata": {"usage": self._usage, "metrics": {"latencyMs": latency_ms}}}

    def _stop_reason(self) -> str:
        reason = _STOP_REASONS.get(self._finish, self._finish)
        return "tool_use" if reason == "end_turn" and self._decoder and self._decoder.called_tool else reason

    def _piece(self, piece: Piece) -> Iterator[StreamEvent]:
        if isinstance(piece, Text):
            yield from self._delta("text", {"text": piece.text})
        elif isinstance(piece, ToolStart):
            use = {"toolUseId": f"tooluse_{uuid.uuid4().hex}", "name": piece.name}
            yield from self._start("tool", {"toolUse": use})
        elif isinstance(piece, ToolInput):
            yield self._event({"toolUse": {"input": piece.text}})

    def _delta(self, kind: str, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        if self._open != kind:
            yield from self._start(kind, {})

        yield self._event(delta)

    def _event(self, delta: dict[str, Any]) -> StreamEvent:
        return {"contentBlockDelta": {"contentBlockIndex": self._index, "delta": delta}}

    def _start(self, kind: str, start: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._stop()
        self._open = kind
        self._index += 1
        yield {"contentBlockStart": {"contentBlockIndex": self._index, "start": start}}

    def _stop(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            self._open = None
            yield {"contentBlockStop": {"contentBlockIndex": self._index}}
