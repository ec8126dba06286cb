"""Turns what LiteLLM hands over into the kernel's stream events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk.types import StreamEvent
from ropewalk_litellm.calls import NO_INDEX, Call, Calls
from ropewalk_litellm.signatures import signature_in
from ropewalk_litellm.thinking import redacted_bytes
from ropewalk_litellm.usage import usage_of

_STOP_REASONS: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "model_context_window_exceeded": "max_tokens",
}


class EventWriter:
    """Writes the events of one answer: text, thinking and tool calls in the order in which they begin."""

    def __init__(self) -> None:
        self._blocks = 0
        self._open: tuple[str, int] | None = None  # the text or thinking at hand: its kind and its block
        self._signed = False
        self._calls = Calls()
        self._finish: str | None = None
        self._usage: dict[str, int] | None = None
        self.begun = False

    def start(self) -> StreamEvent:
        """The first event."""
        return {"messageStart": {"role": "assistant"}}

    def usage(self, usage: Any) -> None:
        """Takes the counts of tokens; the last ones count."""
        if usage is not None:
            self._usage = usage_of(usage)

    @property
    def finished(self) -> bool:
        """Whether the reason is known: the answer is complete."""
        return self._finish is not None

    def finish(self, reason: Any) -> None:
        """Takes the reason why the model stopped; the last one counts."""
        if reason:
            self._finish = str(reason)

    def piece(self, said: Any) -> Iterator[StreamEvent]:
        """The events of one delta, or of a whole message."""
        if said is None:
            return

        yield from self._thinking(said)
        for text in (_text(getattr(said, "content", None)), _text(getattr(said, "refusal", None))):
            if text:
                yield from self._say("text", {"text": text})

        calls = getattr(said, "tool_calls", None) or ()
        for place, call in enumerate(calls):
            index = getattr(call, "index", place)  # a whole message has no indices
            signature = signature_in(call, _function(call))
            yield from self._call(NO_INDEX if index is None else index, _str(call, "id"), _function(call), signature)

        legacy = getattr(said, "function_call", None)
        if legacy is not None and not calls:
            yield from self._call(NO_INDEX, "", legacy)

    def end(self, latency_ms: int) -> Iterator[StreamEvent]:
        """The last events.

        Raises:
            IncompleteStreamError: The model never said why it stopped.
        """
        if self._finish is None:
            raise IncompleteStreamError(
                "litellm: the stream ended without a finish_reason, the answer is incomplete: "
                "try again, or check the server"
            )

        yield from self._close()
        for call in self._calls:
            yield from self._announce(call, at_the_end=True)
            yield {"contentBlockStop": {"contentBlockIndex": call.block}}

        yield {"messageStop": {"stopReason": _STOP_REASONS.get(self._finish, self._finish)}}
        usage = self._usage or {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": latency_ms}}}

    # -- thinking ------------------------------------------------------------------------------------------------

    def _thinking(self, said: Any) -> Iterator[StreamEvent]:
        blocks = getattr(said, "thinking_blocks", None) or ()
        # LiteLLM says the text of its blocks a second time as reasoning_content; servers may send it only so
        if not any(_get(block, "thinking") for block in blocks):
            text = _text(getattr(said, "reasoning_content", None))
            if text:
                yield from self._think({"text": text})

        for block in blocks:
            if _get(block, "type") == "redacted_thinking":
                yield from self._close()
                yield from self._think({"redactedContent": redacted_bytes(_get(block, "data"))})
                yield from self._close()
                continue

            if _get(block, "thinking"):
                yield from self._think({"text": _get(block, "thinking")})

            if _get(block, "signature"):
                yield from self._think({"signature": _get(block, "signature")})

    def _think(self, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        if self._signed and "text" in delta:
            yield from self._close()  # a signature ends its block: what is thought now is another's

        yield from self._say("thinking", {"reasoningContent": delta})
        self._signed = "signature" in delta

    # -- text and thinking, one at a time ------------------------------------------------------------------------

    def _say(self, kind: str, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            self._open = (kind, self._next())
            yield {"contentBlockStart": {"contentBlockIndex": self._open[1], "start": {}}}

        yield {"contentBlockDelta": {"contentBlockIndex": self._open[1], "delta": delta}}

    def _close(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            yield {"contentBlockStop": {"contentBlockIndex": self._open[1]}}
            self._open = None
            self._signed = False

    def _next(self) -> int:
        self.begun = True
        self._blocks += 1
        return self._blocks - 1

    # -- tool calls, several at a time ---------------------------------------------------------------------------

    def _call(self, index: int, use_id: str, function: Any, signature: str = "") -> Iterator[StreamEvent]:
        name = _str(function, "name")
        call = self._calls.find(index, use_id, name)
        if call is None:
            if self._open is not None and self._open[0] == "thinking":
                yield from self._close()

            call = self._calls.open(index, use_id, self._next())

        call.name = call.name or name
        call.signature = call.signature or signature
        call.add(_str(function, "arguments"))
        yield from self._announce(call)

    def _announce(self, call: Call, *, at_the_end: bool = False) -> Iterator[StreamEvent]:
        """Hands on what there is of a call, once its name is known."""
        if not call.announced:
            if not call.name and not at_the_end:
                return

            call.announced = True
            use = {"toolUseId": call.use_id, "name": call.name}
            if call.signature:
                use["signature"] = call.signature

            yield {"contentBlockStart": {"contentBlockIndex": call.block, "start": {"toolUse": use}}}

        for arguments in call.take():
            delta = {"toolUse": {"input": arguments}}
            yield {"contentBlockDelta": {"contentBlockIndex": call.block, "delta": delta}}


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""

    if isinstance(content, list):  # parts, as some gateways send them
        return "".join(str(_get(part, "text") or "") for part in content if isinstance(part, Mapping))

    raise MalformedStreamError(f"litellm: content of type {type(content).__name__} is no text: check the server")


def _function(call: Any) -> Any:
    return getattr(call, "function", None)


def _str(holder: Any, name: str) -> str:
    value = getattr(holder, name, None)
    return value if isinstance(value, str) else ""


def _get(block: Any, name: str) -> Any:
    return block.get(name) if isinstance(block, Mapping) else getattr(block, name, None)
