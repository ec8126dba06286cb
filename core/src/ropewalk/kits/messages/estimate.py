"""A rough count of tokens, for models that do not count themselves.

A quarter of the characters of text, half of those of JSON; 1,600 for an image, which is what the providers' larger
images come to; a quarter of the bytes of a document that is text, a twentieth of those of any other; a token for every
200 bytes of video.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ropewalk.types import Message, SystemContentBlock, ToolSpec

_CHARS_PER_TOKEN: Final = 4
_JSON_CHARS_PER_TOKEN: Final = 2
_IMAGE_TOKENS: Final = 1_600
_TEXT_FORMATS: Final = frozenset({"csv", "html", "md", "txt"})
_DOCUMENT_BYTES_PER_TOKEN: Final = 20
_VIDEO_BYTES_PER_TOKEN: Final = 200


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Tokens of the messages."""
    return sum(message_tokens(message) for message in messages)


def message_tokens(message: Message) -> int:
    """Tokens of one message."""
    return sum(block_tokens(block) for block in message["content"])


def tokens_around(system: Sequence[SystemContentBlock], tools: Sequence[ToolSpec]) -> int:
    """Tokens of what a request holds beside its messages."""
    return sum(block_tokens(block) for block in system) + sum(_json_tokens(spec) for spec in tools)


def block_tokens(block: Any) -> int:
    """Tokens of one block of a message, a tool result or a system prompt."""
    if "text" in block:
        return -(-len(block["text"]) // _CHARS_PER_TOKEN)

    if "toolResult" in block:
        return sum(block_tokens(piece) for piece in block["toolResult"]["content"])

    if "image" in block:
        return _IMAGE_TOKENS

    if "document" in block:
        per_token = _CHARS_PER_TOKEN if block["document"].get("format") in _TEXT_FORMATS else _DOCUMENT_BYTES_PER_TOKEN
        return _bytes_in(block["document"]) // per_token

    if "video" in block:
        return _bytes_in(block["video"]) // _VIDEO_BYTES_PER_TOKEN

    return 0 if "cachePoint" in block else _json_tokens(block)


def _json_tokens(value: Any) -> int:
    return -(-len(json.dumps(value, default=str)) // _JSON_CHARS_PER_TOKEN)


def _bytes_in(medium: Any) -> int:
    source = medium.get("source")
    data = source.get("bytes") if isinstance(source, dict) else None
    return len(data) if isinstance(data, bytes | bytearray | str) else 0
