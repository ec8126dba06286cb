"""What comes back: stream events as the kernel wants them, and a whole answer as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ropewalk.errors import IncompleteStreamError
from ropewalk.types import StreamEvent
from ropewalk_bedrock import guardrails
from ropewalk_bedrock.settings import Settings

# boto3's name for a member of a union that its model of the service does not have.
_UNKNOWN: Final = "SDK_UNKNOWN_MEMBER"
_PASSED: Final = frozenset({
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata",
})  # fmt: skip
_STOPS: Final[Mapping[str, str]] = {"model_context_window_exceeded": "max_tokens"}
"""Reasons that mean one of the kernel's: the answer was cut because the window was full."""
_DELTAS: Final = frozenset({"text", "toolUse", "reasoningContent", "citation"})


class Reader:
    """Reads one stream: drops what the kernel has no use for, and adds the redaction.

    Attributes:
        stopped: Whether the answer is complete; only its metadata may follow.
    """

    __slots__ = ("_has_metadata", "_server_blocks", "_settings", "_stop", "stopped")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop: str | None = None
        self._server_blocks: set[Any] = set()
        self._has_metadata = False
        self.stopped = False

    def read(self, event: StreamEvent) -> Iterable[StreamEvent]:
        """The events to hand on for one that came."""
        body = event.get("contentBlockDelta")
        if body is not None:
            return (event,) if self._is_content(body) else ()

        return self._other(event)

    def end(self) -> Iterable[StreamEvent]:
        """What is missing of an answer whose stream ended before its metadata: what was blocked is redacted still."""
        redacted = None if self._has_metadata else guardrails.redaction(self._settings, self._stop, {})
        return () if redacted is None else (redacted,)

    def _is_content(self, body: Mapping[str, Any]) -> bool:
        delta = body.get("delta")
        if not delta or _DELTAS.isdisjoint(delta) or body.get("contentBlockIndex") in self._server_blocks:
            return False

        reasoning = delta.get("reasoningContent")
        return reasoning is None or _UNKNOWN not in reasoning

    def _other(self, event: StreamEvent) -> Iterable[StreamEvent]:
        key = next(iter(event), None)
        if key not in _PASSED:
            return ()

        body = event[key]
        if key == "contentBlockStart" and self._runs_at_the_provider(body):
            return ()

        if key == "messageStop":
            self._stop = body.get("stopReason")
            self.stopped = True
            return ({key: {**body, "stopReason": _STOPS.get(self._stop or "", self._stop)}},)

        if key == "metadata":
            redacted = guardrails.redaction(self._settings, self._stop, body)
            self._has_metadata = True
            return (event,) if redacted is None else (redacted, event)

        return (event,)

    def _runs_at_the_provider(self, body: Mapping[str, Any]) -> bool:
        """Whether the block is a tool of the provider's own, or its result: nobody here can run or answer it."""
        start = body.get("start") or {}
        use = start.get("toolUse") or {}
        if use.get("type") == "server_tool_use" or "toolResult" in start:
            self._server_blocks.add(body.get("contentBlockIndex"))
            return True

        return False


def events_of(response: Mapping[str, Any]) -> Iterator[StreamEvent]:
    """The answer of Converse as the events of a stream.

    Raises:
        IncompleteStreamError: It has no message.
    """
    message = (response.get("output") or {}).get("message")
    if not message:
        raise IncompleteStreamError("the answer of Converse has no message: try again")

    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(message.get("content") or ()):
        yield from _block_events(index, block)

    stop: dict[str, Any] = {"stopReason": response.get("stopReason") or "end_turn"}
    if response.get("additionalModelResponseFields") is not None:
        stop["additionalModelResponseFields"] = response["additionalModelResponseFields"]

    yield {"messageStop": stop}
    metadata = ("usage", "metrics", "trace", "performanceConfig", "serviceTier")
    yield {"metadata": {key: response[key] for key in metadata if response.get(key) is not None}}


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[StreamEvent]:
    start: dict[str, Any] = {}
    deltas: list[dict[str, Any]] = []
    if "text" in block:
        deltas = [{"text": block["text"]}]
    elif "toolUse" in block:
        use = block["toolUse"]
        start = {"toolUse": {key: use[key] for key in ("toolUseId", "name", "type") if key in use}}
        deltas = [{"toolUse": {"input": json.dumps(use.get("input"))}}] if use.get("input") is not None else []
    elif "reasoningContent" in block:
        deltas = [{"reasoningContent": piece} for piece in _thinking(block["reasoningContent"])]
    elif "citationsContent" in block:
        cited = block["citationsContent"]
        deltas = [{"text": piece["text"]} for piece in cited.get("content") or () if piece.get("text")]
        deltas += [{"citation": one} for one in cited.get("citations") or ()]

    if not start and not deltas:
        return

    yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
    for delta in deltas:
        yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}

    yield {"contentBlockStop": {"contentBlockIndex": index}}


def _thinking(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    thought = content.get("reasoningText") or {}
    for key in ("text", "signature"):
        if thought.get(key):
            yield {key: thought[key]}

    if content.get("redactedContent"):
        yield {"redactedContent": content["redactedContent"]}
