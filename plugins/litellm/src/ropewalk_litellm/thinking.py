"""Thinking blocks: `thinking_blocks` of LiteLLM to and from reasoning blocks.

Redacted thinking is bytes here and a text there. The bytes are what the text says in base64, as the provider's own API
has it; any other text is kept as it is behind a prefix, so that what is sent back is what came.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_AS_TEXT: Final = b"litellm-text:"
_KEEPS_ITS_OWN: Final = re.compile(r"((openai|azure)/)?(gpt-(?!oss)|o[1-9]\b|chatgpt)", re.IGNORECASE)


def takes_thinking(model_id: str) -> bool:
    """Whether a model has a use for earlier thinking: OpenAI's models show none and take none, of others neither."""
    return _KEEPS_ITS_OWN.match(model_id) is None


def redacted_bytes(data: str) -> bytes:
    """The bytes of a redacted block."""
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return _AS_TEXT + data.encode("utf-8", "surrogatepass")

    same = base64.b64encode(decoded).decode() == data
    return decoded if same and not decoded.startswith(_AS_TEXT) else _AS_TEXT + data.encode()


def redacted_text(content: bytes) -> str:
    """What stands for these bytes in a request."""
    if content.startswith(_AS_TEXT):
        return content.removeprefix(_AS_TEXT).decode("utf-8", "surrogatepass")

    return base64.b64encode(content).decode()


def thinking_of(blocks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What an assistant message carries of its thinking.

    Signed and redacted blocks go back to the provider that made them. Thinking without a signature is given back, as
    `reasoning_content`, only in a turn that asks for tools: there some models go on from it, elsewhere it is refused or
    ignored.
    """
    blocks = list(blocks)
    signed: list[dict[str, Any]] = []
    plain: list[str] = []
    for block in blocks:
        reasoning = block.get("reasoningContent")
        if reasoning is None:
            continue

        if "redactedContent" in reasoning:
            signed.append({"type": "redacted_thinking", "data": redacted_text(bytes(reasoning["redactedContent"]))})
            continue

        thought = reasoning.get("reasoningText") or {}
        if thought.get("signature"):
            signed.append({"type": "thinking", "thinking": thought.get("text", ""), "signature": thought["signature"]})
        elif thought.get("text"):
            plain.append(thought["text"])

    if signed:
        return {"thinking_blocks": signed}

    return {"reasoning_content": "".join(plain)} if plain and any("toolUse" in block for block in blocks) else {}
