"""A rough count of tokens, for models that do not count themselves.

A quarter of the characters of text, also of thoughts, citations and the text of documents; half of those of JSON;
1,600 for an image, which is what the providers' larger images come to; a quarter of the bytes of a document that is
text, a twentieth of those of any other; a token for every 200 bytes of video. What the provider fetches itself counts
as an image does, for nobody knows its size.
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
        return _text_tokens(block["text"])

    if "toolResult" in block:
        return sum(block_tokens(piece) for piece in block["toolResult"]["content"])

    if "image" in block:
        return _IMAGE_TOKENS

    if "document" in block:
        per_token = _CHARS_PER_TOKEN if block["document"].get("format") in _TEXT_FORMATS else _DOCUMENT_BYTES_PER_TOKEN
        return _medium_tokens(block["document"], per_token)

    if "video" in block:
        return _medium_tokens(block["video"], _VIDEO_BYTES_PER_TOKEN)

    return 0 if "cachePoint" in block else _other_tokens(block)


def _text_tokens(text: Any) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN) if isinstance(text, str) else 0


def _json_tokens(value: Any) -> int:
    return -(-len(json.dumps(value, ensure_ascii=False, default=str)) // _JSON_CHARS_PER_TOKEN)


def _other_tokens(block: Any) -> int:
    """Tokens of the blocks that wrap a text, and of all that is JSON to us."""
    match block:
        case {"reasoningContent": {"reasoningText": {"text": str(text)}}}:
            return _text_tokens(text)
        case {"reasoningContent": {"redactedContent": bytes(data) | bytearray(data) | str(data)}}:
            return -(-len(data) // _CHARS_PER_TOKEN)
        case {"guardContent": {"text": {"text": str(text)}}}:
            return _text_tokens(text)
        case {"citationsContent": {"content": [*pieces]}}:
            return sum(map(block_tokens, pieces))
        case {"guardContent": {"image": _}}:
            return _IMAGE_TOKENS
        case _:
            return _json_tokens(block)


def _medium_tokens(medium: Any, bytes_per_token: int) -> int:
    match medium.get("source"):
        case {"bytes": bytes(data) | bytearray(data) | str(data)}:
            return len(data) // bytes_per_token
        case {"bytes": memoryview() as data}:
            return data.nbytes // bytes_per_token
        case {"text": str(text)}:
            return _text_tokens(text)
        case {"content": [*pieces]}:
            return sum(map(block_tokens, pieces))
        case {"s3Location": _} | {"location": _}:
            return _IMAGE_TOKENS
        case _:
            return 0
