"""Puts a model's stream together. Providers interleave blocks, repeat indices and ids, leave them out, end early."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk.kits.calls.outcomes import NO_USAGE, ModelOutcome
from ropewalk.kits.events import Delta, TextEnded, ToolInputDelta
from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.kits.messages.rules import FreeId
from ropewalk.types import ContentBlock, Message, StreamEvent, ToolUse, Usage

_SHOWN: Final = 80
T = TypeVar("T")

# Stop reasons after which a tool that was asked for is not run, and what stands in the place of its use.
_NOT_RUN: Final = {
    "max_tokens": "The selected tool {}'s tool use was incomplete due to maximum token limits being reached.",
    "content_filtered": "The selected tool {}'s tool use was withheld: the answer was filtered.",
    "guardrail_intervened": "The selected tool {}'s tool use was withheld: a guardrail intervened.",
}
_NO_INDEX: Final = object()  # the index of no block; not the assembly itself, which would then wait for the collector


class _Block:
    """One content block as far as it came. `index` orders blocks; equal indices keep their order of arrival."""

    __slots__ = ("closed", "index", "kind", "parts", "redacted", "signature", "start")

    def __init__(self, kind: str, index: float, start: dict[str, Any] | None = None) -> None:
        self.kind = kind
        self.index = index
        self.start = start or {}
        self.parts: list[Any] = []
        self.signature: list[str] = []
        self.redacted: list[bytes] = []
        self.closed = False


class Assembly:
    """One attempt's answer in the making. Feed it every event, then ask for the outcome, once."""

    __slots__ = ("_blocks", "_by_index", "_current", "_latency", "_redact", "_stop", "_text_index", "_text_parts",
                 "_usage")  # fmt: skip

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._by_index: dict[Any, _Block] = {}
        self._current: _Block | None = None
        self._text_index: Any = _NO_INDEX
        self._text_parts: list[Any]  # once a text has begun
        self._stop: str | None = None
        self._usage: Usage = NO_USAGE
        self._latency = 0
        self._redact: dict[str, Any] | None = None

    # -- feeding ---------------------------------------------------------------------------------------------------

    def feed(self, raw: StreamEvent) -> Delta | None:
        """Takes one event in.

        Returns:
            What followers are told when the event alone does not say it; `events.delta_of` serves for others.

        Raises:
            MalformedStreamError: The event has none of the known shapes.
        """
        if self._text_index is not _NO_INDEX:  # elsewhere nearly all events would raise here
            try:
                body = raw["contentBlockDelta"]
                text = body["delta"]["text"]
                if body["contentBlockIndex"] is self._text_index and type(text) is str:
                    self._text_parts.append(text)  # nearly every event: one more piece of the text at hand
                    return None
            except (KeyError, TypeError, AttributeError):
                pass

        told: Delta | None = None
        try:
            for key, body in raw.items():
                handler = _HANDLERS.get(key)
                if handler is not None:
                    told = handler(self, body, raw) or told
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise MalformedStreamError(
                f"{_shown(raw)} is no stream event: the model plugin must send Converse events"
            ) from error

        return told

    def _on_delta(self, body: dict[str, Any], raw: StreamEvent) -> ToolInputDelta | None:
        delta: dict[str, Any] = body["delta"]
        index = body.get("contentBlockIndex")
        if "toolUse" in delta:
            block = self._tool_block(index)
            block.parts.append(delta["toolUse"].get("input") or "")
            return ToolInputDelta(raw, delta, block.start, block.parts)

        text = delta.get("text")
        if text is not None:
            self._take_text(index, text)
        elif "reasoningContent" in delta:
            self._take_reasoning(self._block("reasoning", index), delta["reasoningContent"])
        elif "citation" in delta:
            block = self._by_index.get(index) or self._block("citations", index)
            block.start.setdefault("citations", []).append(strict_json(delta["citation"]))

        return None

    def _on_start(self, body: dict[str, Any], _: StreamEvent) -> None:
        start: dict[str, Any] = body.get("start") or {}
        if "toolUse" in start:
            self._open("tool", body.get("contentBlockIndex"), dict(start["toolUse"]))

    def _on_stop(self, body: dict[str, Any], raw: StreamEvent) -> TextEnded | None:
        index = body.get("contentBlockIndex")
        block = self._by_index.pop(index, None) or (self._current if index is None else None)
        if block is None:
            return None

        block.closed = True
        self._text_index = _NO_INDEX
        self._current = None if block is self._current else self._current
        return TextEnded(raw) if block.kind == "text" else None

    def _on_message_stop(self, body: dict[str, Any], _: StreamEvent) -> None:
        self._stop = str(body.get("stopReason") or "end_turn")

    def _on_metadata(self, body: dict[str, Any], _: StreamEvent) -> None:
        usage = body.get("usage")
        if usage:
            self._usage = _checked_usage(usage)

        self._latency = int((body.get("metrics") or {}).get("latencyMs") or 0)

    def _on_redact(self, body: dict[str, Any], _: StreamEvent) -> None:
        texts = {key: clean_text(_of_type(str, text)) for key, text in body.items() if text}
        self._redact = {**(self._redact or {}), **texts}

    # -- finding the block a delta belongs to ----------------------------------------------------------------------

    def _open(self, kind: str, index: Any, start: dict[str, Any] | None = None) -> _Block:
        """A new block. It takes over its index: a new id never merges into another call."""
        last = self._blocks[-1].index if self._blocks else -1
        place = float(index) if isinstance(index, int) and not isinstance(index, bool) else last
        block = _Block(kind, place, start)
        self._blocks.append(block)
        self._by_index[index] = self._current = block
        return block

    def _block(self, kind: str, index: Any) -> _Block:
        block = self._by_index.get(index)
        if block is None and index is None and self._current is not None:
            block = self._current

        return block if block is not None and block.kind == kind else self._open(kind, index)

    def _tool_block(self, index: Any) -> _Block:
        """The call a piece of arguments belongs to: that of its index, else the one being streamed."""
        block = self._by_index.get(index)
        if block is None or block.kind != "tool":
            open_tools = [b for b in self._blocks if b.kind == "tool" and not b.closed]
            block = open_tools[-1] if open_tools else self._open("tool", index)

        return block

    def _take_text(self, index: Any, text: object) -> None:
        if index is not self._text_index:
            self._text_parts = self._block("text", index).parts
            self._text_index = index

        if type(text) is not str:
            raise MalformedStreamError(f"a text delta carries {type(text).__name__}: the model plugin must send str")

        self._text_parts.append(text)

    @staticmethod
    def _take_reasoning(block: _Block, piece: dict[str, Any]) -> None:
        if piece.get("text") is not None:
            block.parts.append(_of_type(str, piece["text"]))

        if piece.get("signature"):
            block.signature.append(_of_type(str, piece["signature"]))

        if piece.get("redactedContent") is not None:
            block.redacted.append(_of_type(bytes, piece["redactedContent"]))

    # -- the outcome -----------------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage:
        """Tokens as far as the provider reported them."""
        return self._usage

    def finish(self, free_id: FreeId) -> ModelOutcome:
        """The outcome of a stream that ended by itself.

        Args:
            free_id: Makes tool-use ids legal and unique.

        Raises:
            IncompleteStreamError: There was no `messageStop`.
        """
        stop = self._stop
        if stop is None:
            raise IncompleteStreamError(
                "the model's stream ended without a messageStop: the answer is incomplete; "
                "try again or install ropewalk-retry"
            )

        errors: dict[str, str] = {}
        content: list[ContentBlock] = []
        taken: set[str] = set()
        for block in self._ordered():
            if block.kind != "tool":
                content.extend(_content(block))
            elif stop in _NOT_RUN:
                content.append({"text": _NOT_RUN[stop].format(_name(block) or "unknown")})
            else:
                content.append(_tool_use(block, free_id, taken, errors))

        redact = self._redact or {}
        if redact.get("redactAssistantContentMessage"):
            content = [{"text": redact["redactAssistantContentMessage"]}]

        stop = _true_stop(stop, content)
        message: Message = {"role": "assistant", "content": content}
        return ModelOutcome(
            message, stop, self._usage, self._latency, errors or None, redact.get("redactUserContentMessage")
        )

    def cancelled(self) -> ModelOutcome:
        """What is worth keeping of a stream that was stopped: texts and finished thinking, no tool uses."""
        kept = [b for b in self._ordered() if b.kind == "text" or (b.kind == "reasoning" and b.closed)]
        content = [c for b in kept for c in _content(b)]
        if not any("reasoningContent" not in c for c in content):
            content = []

        return ModelOutcome({"role": "assistant", "content": content}, "cancelled", self._usage, self._latency)

    def _ordered(self) -> list[_Block]:
        return sorted(self._blocks, key=lambda block: block.index) if len(self._blocks) > 1 else self._blocks


_HANDLERS: Final[dict[str, Callable[[Assembly, Any, StreamEvent], Delta | None]]] = {
    "contentBlockDelta": Assembly._on_delta,  # noqa: SLF001 - the class's own table
    "contentBlockStart": Assembly._on_start,  # noqa: SLF001
    "contentBlockStop": Assembly._on_stop,  # noqa: SLF001
    "messageStop": Assembly._on_message_stop,  # noqa: SLF001
    "metadata": Assembly._on_metadata,  # noqa: SLF001
    "redactContent": Assembly._on_redact,  # noqa: SLF001
}


def _true_stop(stop: str, content: list[ContentBlock]) -> str:
    """The stop reason that the content bears out: some providers say end_turn with tool uses, or the reverse."""
    asks = bool([c for c in content if "toolUse" in c])
    if asks and stop in ("end_turn", "stop_sequence", "tool_use"):
        return "tool_use"

    return "end_turn" if stop == "tool_use" and not asks else stop


def _content(block: _Block) -> list[ContentBlock]:
    if block.kind == "text":
        text = clean_text("".join(block.parts))
        if "citations" in block.start:
            return [{"citationsContent": {"content": [{"text": text}], "citations": block.start["citations"]}}]

        return [{"text": text}] if text else []

    if block.kind == "citations":
        return [{"citationsContent": {"content": [], "citations": block.start["citations"]}}]

    if block.kind == "reasoning":
        return _reasoning(block)

    return []


def _reasoning(block: _Block) -> list[ContentBlock]:
    content: list[ContentBlock] = []
    if block.redacted:
        content.append({"reasoningContent": {"redactedContent": b"".join(block.redacted)}})

    text, signature = clean_text("".join(block.parts)), "".join(block.signature)
    if signature:
        content.append({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
    elif text:
        content.append({"reasoningContent": {"reasoningText": {"text": text}}})

    return content


def _tool_use(block: _Block, free_id: FreeId, taken: set[str], errors: dict[str, str]) -> ContentBlock:
    use_id = free_id(block.start.get("toolUseId"), taken)
    taken.add(use_id)
    value, problem = parsed_input(block.parts)
    if problem is not None:
        errors[use_id] = problem

    use: ToolUse = {"toolUseId": use_id, "name": _name(block), "input": value}
    signature = block.start.get("signature")
    if isinstance(signature, str) and signature:  # some providers sign a call, and want the signature back with it
        use["signature"] = clean_text(signature)

    return {"toolUse": use}


def _name(block: _Block) -> str:
    name = block.start.get("name")
    return clean_text(name) if isinstance(name, str) else ""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no finite number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_constant(digits)


# A decoder of our own, made once: json.loads with options builds one at every call.
_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode


def parsed_input(parts: list[Any]) -> tuple[dict[str, Any], str | None]:
    """The arguments of a tool use, and what is wrong with them; blank means no arguments."""
    if len(parts) == 1 and isinstance(parts[0], dict):
        return strict_json(parts[0]), None

    try:
        raw = "".join(parts)
        if not raw.strip():
            return {}, None

        value = _decode(raw)
    except (ValueError, TypeError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON ({error})"

    if not isinstance(value, dict):
        return {}, f"the arguments are a JSON {_JSON_NAMES[type(value)]}, not an object"

    # only escapes and non-ASCII text can hold what is not Unicode
    return (value if raw.isascii() and "\\u" not in raw else strict_json(value)), None


_JSON_NAMES: Final[dict[type, str]] = {
    list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def _checked_usage(usage: dict[str, Any]) -> Usage:
    counts: dict[str, int] = {}
    for key, value in usage.items():
        if type(value) is int and value >= 0:
            counts[key] = value
        elif isinstance(value, int | float) and math.isfinite(value):
            counts[key] = max(int(value), 0)

    entered, left = counts.get("inputTokens", 0), counts.get("outputTokens", 0)
    counts["inputTokens"], counts["outputTokens"] = entered, left
    counts["totalTokens"] = max(counts.get("totalTokens", 0), entered + left)  # limits are held against it
    return counts  # type: ignore[return-value]


def _of_type(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} stands where {kind.__name__} is due")

    return value


def _shown(raw: object) -> str:
    try:
        text = repr(raw)
    except Exception:  # noqa: BLE001 - shown in an error message only
        text = f"<{type(raw).__name__}>"

    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
