"""A rough count of tokens, for models that do not count themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ropewalk.types import Message

_CHARS_PER_TOKEN: Final = 4
_JSON_CHARS_PER_TOKEN: Final = 2


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Tokens of the messages: a quarter of the characters of text, half of those of JSON."""
    return sum(_block_tokens(block) for message in messages for block in message["content"])


def _block_tokens(block: Any) -> int:
    if "text" in block:
        return -(-len(block["text"]) // _CHARS_PER_TOKEN)

    if "toolResult" in block:
        return sum(_block_tokens(piece) for piece in block["toolResult"]["content"])

    return -(-len(json.dumps(block, default=str)) // _JSON_CHARS_PER_TOKEN)
