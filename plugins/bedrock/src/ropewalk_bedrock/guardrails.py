"""Guardrails: how a request names one, and what is redacted when one has intervened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ropewalk.types import StreamEvent
from ropewalk_bedrock.settings import Settings

_INTERVENED: Final = "guardrail_intervened"
_GUARDED_IMAGES: Final = ("png", "jpeg")


def config_of(settings: Settings, *, streaming: bool) -> dict[str, Any] | None:
    """The request's `guardrailConfig`, or None without a guardrail."""
    if settings.guardrail_id is None:
        return None

    config = {
        "guardrailIdentifier": settings.guardrail_id,
        "guardrailVersion": settings.guardrail_version or "DRAFT",
        "trace": settings.guardrail_trace,
    }
    if streaming and settings.guardrail_stream_processing_mode is not None:
        config["streamProcessingMode"] = settings.guardrail_stream_processing_mode

    return config


def guard_latest(messages: Sequence[dict[str, Any]]) -> None:
    """Marks the last user turn's own words and pictures, so that the guardrail assesses these alone."""
    last = next((m for m in reversed(messages) if m["role"] == "user" and _has_words(m)), None)
    if last is None or any("guardContent" in block for block in last["content"]):
        return

    last["content"] = [_guarded(block) for block in last["content"]]


def redaction(settings: Settings, stop: str | None, metadata: Mapping[str, Any]) -> StreamEvent | None:
    """The event that has blocked texts replaced, or None.

    The trace says whether the input or the answer was blocked. Without a trace the stop reason says that one of them
    was, and both are taken to be.
    """
    trace = (metadata.get("trace") or {}).get("guardrail") or {}
    blocked_input = _blocks(trace.get("inputAssessment"))
    blocked_output = _blocks(trace.get("outputAssessments"))
    if not blocked_input and not blocked_output:
        if stop != _INTERVENED:
            return None

        blocked_input = blocked_output = True

    texts = {}
    if blocked_input and settings.guardrail_redact_input:
        texts["redactUserContentMessage"] = settings.guardrail_redact_input_message

    if blocked_output and settings.guardrail_redact_output:
        texts["redactAssistantContentMessage"] = settings.guardrail_redact_output_message

    return {"redactContent": texts} if texts else None


def _blocks(part: Any) -> bool:
    """Whether anything in an assessment was blocked; a policy in detect mode has found something and let it pass."""
    if isinstance(part, Mapping):
        if part.get("action") == "BLOCKED" and part.get("detected", True):
            return True

        return any(_blocks(value) for value in part.values())

    return isinstance(part, list | tuple) and any(_blocks(value) for value in part)


def _has_words(message: Mapping[str, Any]) -> bool:
    return any("text" in block or "image" in block or "guardContent" in block for block in message["content"])


def _guarded(block: dict[str, Any]) -> dict[str, Any]:
    if "text" in block:
        return {"guardContent": {"text": {"text": block["text"]}}}

    image = block.get("image")
    if image and image.get("format") in _GUARDED_IMAGES and "bytes" in image["source"]:
        return {"guardContent": {"image": image}}

    return block
