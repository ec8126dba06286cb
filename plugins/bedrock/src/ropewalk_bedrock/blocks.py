"""From content blocks of a conversation to those of a Converse request: known fields only, in shapes it accepts.

Nothing of the conversation is written to; blocks that need no change are shared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.kits.messages.rules import BLANK, INVALID_TOOL_NAME, is_legal_id, is_legal_tool_name
from ropewalk.kits.model_errors import model_error

Block = dict[str, Any]

_FORMATS: Final[Mapping[str, str]] = {"jpg": "jpeg", "3gp": "three_gp", "markdown": "md", "text": "txt"}
_DOCUMENT_NAME: Final = re.compile(r"[^a-zA-Z0-9\s()\[\]-]", re.ASCII)
_SPACES: Final = re.compile(r"\s+")
_NAME_LENGTH: Final = 200
_ID_HASH: Final = 24
_LOCATIONS: Final = ("web", "documentChar", "documentPage", "documentChunk", "searchResultLocation")


class BlockWriter:
    """Writes the blocks of one request.

    Args:
        with_status: Send the status of tool results.
        with_reasoning: Send earlier thinking.
        signed_only: Leave out thinking without a signature.
    """

    __slots__ = ("_names", "_reasoning", "_signed_only", "_status")

    def __init__(self, *, with_status: bool, with_reasoning: bool, signed_only: bool = False) -> None:
        self._status = with_status
        self._reasoning = with_reasoning
        self._signed_only = signed_only
        self._names: set[str] = set()

    def write(self, block: Mapping[str, Any]) -> Block | None:
        """The block as it is sent, or None when there is nothing that Converse takes."""
        for key, value in block.items():
            writer = _WRITERS.get(key)
            if writer is not None and value is not None:
                return writer(self, value)

        return None

    def _text(self, value: str) -> Block | None:
        text = clean_text(value)
        return {"text": text} if text.strip() else None

    def _tool_use(self, use: Mapping[str, Any]) -> Block:
        name, value = use["name"], use.get("input")
        return {
            "toolUse": {
                "toolUseId": legal_id(use["toolUseId"]),
                "name": name if is_legal_tool_name(name) else INVALID_TOOL_NAME,
                "input": strict_json(value) if isinstance(value, dict) else {},
            }
        }

    def _tool_result(self, result: Mapping[str, Any]) -> Block:
        pieces = (self._piece(piece) for piece in result["content"])
        written: Block = {
            "toolUseId": legal_id(result["toolUseId"]),
            "content": [piece for piece in pieces if piece is not None] or [{"text": BLANK}],
        }
        if self._status and result.get("status") in ("success", "error"):
            written["status"] = result["status"]

        return {"toolResult": written}

    def _piece(self, piece: Mapping[str, Any]) -> Block | None:
        if "json" in piece:
            value = strict_json(piece["json"])
            # Converse refuses JSON that is no object here.
            return {"json": value} if isinstance(value, dict) else {"text": json.dumps(value, ensure_ascii=False)}

        return self.write({key: piece[key] for key in ("text", "image", "document", "video") if key in piece})

    def _image(self, image: Mapping[str, Any]) -> Block:
        return {"image": _media(image)}

    def _video(self, video: Mapping[str, Any]) -> Block:
        return {"video": _media(video)}

    def _document(self, document: Mapping[str, Any]) -> Block:
        written = _media(document)
        written["name"] = self._document_name(str(document.get("name") or "document"))
        for key in ("context", "citations"):
            if document.get(key) is not None:
                written[key] = document[key]

        return {"document": written}

    def _document_name(self, name: str) -> str:
        """A name of the letters Converse allows, one of a kind in the request."""
        legal = _SPACES.sub(" ", _DOCUMENT_NAME.sub("-", name)).strip()[:_NAME_LENGTH] or "document"
        unique, count = legal, 1
        while unique in self._names:
            count += 1
            number = f" ({count})"
            unique = legal[: _NAME_LENGTH - len(number)] + number

        self._names.add(unique)
        return unique

    def _reasoning_content(self, content: Mapping[str, Any]) -> Block | None:
        if not self._reasoning:
            return None

        if content.get("redactedContent"):
            return {"reasoningContent": {"redactedContent": content["redactedContent"]}}

        thought = content.get("reasoningText")
        if not thought:
            return None

        written = {"text": clean_text(thought.get("text") or "")}
        if thought.get("signature"):
            written["signature"] = thought["signature"]
        elif self._signed_only:
            return None

        return {"reasoningContent": {"reasoningText": written}} if any(written.values()) else None

    def _citations(self, cited: Mapping[str, Any]) -> Block | None:
        texts = [{"text": piece["text"]} for piece in cited.get("content") or () if piece.get("text")]
        if not texts:
            return None

        citations = [_citation(one) for one in cited.get("citations") or ()]
        return {"citationsContent": {"content": texts, "citations": [one for one in citations if one]}}

    def _as_is(self, key: str, value: Any) -> Block:
        return {key: value}


def legal_id(value: Any) -> str:
    """The tool-use id, or one made of it: the same for the use and its result."""
    if is_legal_id(value):
        return str(value)

    return f"id_{hashlib.sha256(str(value).encode(errors='replace')).hexdigest()[:_ID_HASH]}"


def _media(block: Mapping[str, Any]) -> Block:
    """Format and source of an image, a document or a video."""
    source = block.get("source") or {}
    location = source.get("location")
    if location is not None:  # another way to say it: {"location": {"type": "s3", "uri": ...}}
        source = {"s3Location": {key: location[key] for key in ("uri", "bucketOwner") if location.get(key)}}

    if isinstance(source.get("bytes"), str):  # boto3 would take it for the content itself
        wrong = "an image, a document or a video has text as its bytes: give bytes, of base64 text what b64decode makes"
        raise model_error("bad_request", wrong, provider="bedrock")

    written: Block = {"source": source}
    kind = block.get("format")
    if kind:
        written["format"] = _FORMATS.get(str(kind).lower(), str(kind).lower())

    return written


def _citation(one: Mapping[str, Any]) -> Block:
    written: Block = {key: one[key] for key in ("title", "source") if one.get(key)}
    content = [{"text": piece["text"]} for piece in one.get("sourceContent") or () if piece.get("text")]
    if content:
        written["sourceContent"] = content

    location = {key: value for key, value in (one.get("location") or {}).items() if key in _LOCATIONS}
    if location:
        written["location"] = location

    return written


_WRITERS: Final[Mapping[str, Callable[[BlockWriter, Any], Block | None]]] = {
    "text": BlockWriter._text,  # noqa: SLF001 - the class's own table
    "toolUse": BlockWriter._tool_use,  # noqa: SLF001
    "toolResult": BlockWriter._tool_result,  # noqa: SLF001
    "reasoningContent": BlockWriter._reasoning_content,  # noqa: SLF001
    "image": BlockWriter._image,  # noqa: SLF001
    "document": BlockWriter._document,  # noqa: SLF001
    "video": BlockWriter._video,  # noqa: SLF001
    "citationsContent": BlockWriter._citations,  # noqa: SLF001
    "guardContent": lambda writer, value: writer._as_is("guardContent", value),  # noqa: SLF001
    "cachePoint": lambda writer, value: writer._as_is("cachePoint", value),  # noqa: SLF001
}
