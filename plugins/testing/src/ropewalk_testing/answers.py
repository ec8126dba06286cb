"""Takes the stream of an answer apart, and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_KNOWN: Final = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
    "redactContent",
)


@dataclass(slots=True)
class Block:
    """One block as it was streamed: `text`, `toolUse` or `reasoning`."""

    kind: str
    use: dict[str, Any] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: bytes | None = None
    closed: bool = False

    @property
    def text(self) -> str:
        """All pieces together; of a tool use its arguments as JSON."""
        return "".join(self.pieces)


@dataclass(slots=True)
class Answer:
    """A whole answer.

    Attributes:
        blocks: By block index.
        stop: The stop reason.
        usage: The usage, or None if there was no metadata.
    """

    blocks: dict[int, Block] = field(default_factory=dict)
    stop: str | None = None
    usage: Mapping[str, int] | None = None
    started: bool = False

    @property
    def text(self) -> str:
        """The text blocks together."""
        return "".join(block.text for block in self.of("text"))

    @property
    def content(self) -> list[dict[str, Any]]:
        """The blocks for a history; arguments of tools stay JSON text."""
        return [_as_content(block) for _, block in sorted(self.blocks.items())]

    def of(self, kind: str) -> list[Block]:
        """The blocks of a kind, by index."""
        return [block for _, block in sorted(self.blocks.items()) if block.kind == kind]


def answer_of(events: Iterable[Any], *, complete: bool = True) -> Answer:
    """Puts a stream together, holding it to the form that `ropewalk.types.StreamEvent` describes.

    Args:
        events: The stream's events.
        complete: Whether it must have come to its end.

    Returns:
        The answer.

    Raises:
        AssertionError: An event is malformed or in a wrong place; the message says which.
    """
    __tracebackhide__ = True
    answer = Answer()
    for place, event in enumerate(events):
        fault = _fault_of(answer, event)
        if fault:
            raise AssertionError(f"event {place} of the stream, {event!r}: {fault}")

    if complete and answer.stop is None:
        raise AssertionError("the stream ended without messageStop")
    if complete and answer.usage is None:
        raise AssertionError("the stream ended without metadata")

    return answer


def _fault_of(answer: Answer, event: Any) -> str | None:  # noqa: PLR0911 - one rule per kind
    if not isinstance(event, dict) or len(event) != 1 or next(iter(event)) not in _KNOWN:
        return f"an event is a dict with one of the keys {', '.join(_KNOWN)}"

    ((kind, body),) = event.items()
    if not isinstance(body, dict):
        return "its value is no dict"
    if (kind == "messageStart") == answer.started:
        return "messageStart must come first, and once"
    if answer.stop is not None and kind not in ("metadata", "redactContent"):
        return "nothing but metadata and redactContent may follow messageStop"
    if kind == "messageStart":
        answer.started = True
        return None if body.get("role") == "assistant" else "the role of an answer is assistant"
    if kind == "messageStop":
        return _stop(answer, body)
    if kind == "metadata":
        return _metadata(answer, body)
    if kind == "redactContent":
        return None

    return _block_event(answer, kind, body)


def _stop(answer: Answer, body: dict[str, Any]) -> str | None:
    answer.stop = body.get("stopReason")
    still = [index for index, block in answer.blocks.items() if not block.closed]
    if not isinstance(answer.stop, str) or not answer.stop:
        return "stopReason is no text"

    return f"blocks {still} were not stopped" if still else None


def _metadata(answer: Answer, body: dict[str, Any]) -> str | None:
    usage = body.get("usage")
    if answer.stop is None:
        return "metadata must follow messageStop"
    if not isinstance(usage, dict):
        return "usage is missing"

    answer.usage = usage
    wrong = [key for key, value in usage.items() if type(value) is not int or value < 0]
    missing = [key for key in ("inputTokens", "outputTokens", "totalTokens") if key not in usage]
    return f"usage: {missing + wrong} must be numbers from 0 on" if wrong or missing else None


def _block_event(answer: Answer, kind: str, body: dict[str, Any]) -> str | None:
    index = body.get("contentBlockIndex")
    if type(index) is not int:
        return "contentBlockIndex is no number"

    block = answer.blocks.get(index)
    if kind == "contentBlockStart":
        return f"block {index} was there already" if block else _start(answer, index, body.get("start"))
    if block is not None and block.closed:
        return f"block {index} was stopped already"
    if kind == "contentBlockDelta":
        return _delta(answer, index, body.get("delta"))
    if block is None:
        return f"block {index} was not begun"

    block.closed = True
    return None


def _start(answer: Answer, index: int, start: Any) -> str | None:
    if not isinstance(start, dict):
        return "start is no dict"
    if not start:
        answer.blocks[index] = Block("")
        return None

    use = start.get("toolUse")
    if not isinstance(use, dict) or not all(
        isinstance(use.get(key), str) and use[key] for key in ("toolUseId", "name")
    ):
        return "start is {} or {'toolUse': {'toolUseId': ID, 'name': NAME}}"

    answer.blocks[index] = Block("toolUse", dict(use))
    return None


def _delta(answer: Answer, index: int, delta: Any) -> str | None:
    if not isinstance(delta, dict) or len(delta) != 1:
        return "delta is no dict with one key"

    ((key, value),) = delta.items()
    kinds = {"text": "text", "citation": "text", "toolUse": "toolUse", "reasoningContent": "reasoning"}
    kind = kinds.get(key)
    if kind is None:
        return f"a delta has one of the keys {', '.join(kinds)}"

    block = answer.blocks.get(index)
    if block is None:
        block = answer.blocks[index] = Block("")
    if kind == "toolUse" and block.kind != "toolUse":
        return f"block {index} was not begun as a tool use"

    block.kind = block.kind or kind
    if block.kind != kind:
        return f"block {index} is of the kind {block.kind}"
    if key == "citation":
        return None

    return (
        _reasoning(block, value) if kind == "reasoning" else _piece(block, value["input"] if kind != "text" else value)
    )


def _piece(block: Block, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"a {type(value).__name__} in place of a text"

    block.pieces.append(value)
    return None


def _reasoning(block: Block, value: dict[str, Any]) -> str | None:
    ((key, part),) = value.items()
    if key == "text":
        return _piece(block, part)
    if key == "signature" and isinstance(part, str):
        block.signature = (block.signature or "") + part
        return None
    if key == "redactedContent" and isinstance(part, bytes):
        block.redacted = (block.redacted or b"") + part
        return None

    return "reasoning is a text, a signature (text) or redactedContent (bytes)"


def _as_content(block: Block) -> dict[str, Any]:
    if block.kind == "toolUse":
        return {"toolUse": {**block.use, "input": block.text}}
    if block.kind != "reasoning":
        return {"text": block.text}
    if block.redacted is not None:
        return {"reasoningContent": {"redactedContent": block.redacted}}

    signed = {} if block.signature is None else {"signature": block.signature}
    return {"reasoningContent": {"reasoningText": {"text": block.text, **signed}}}
