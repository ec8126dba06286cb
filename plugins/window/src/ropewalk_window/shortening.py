"""Tool results made short: their head and tail stay, media become placeholders."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ropewalk.types import ContentBlock, Message

LONGEST: Final = 400
"""Characters of a text that is left as it is."""

HEAD: Final = 200
TAIL: Final = 200

_MARKER: Final = re.compile(r"\.\.\. \[truncated: \d+ chars removed\] \.\.\.")
_PIECES: Final = 5
_MEDIA: Final = ("image", "document", "video")


def shortened(message: Message) -> Message:
    """The message with its tool results made short; itself when there is nothing to gain."""
    content = [_block(block) for block in message["content"]]
    if all(one is other for one, other in zip(content, message["content"], strict=True)):
        return message

    return {**message, "content": content}


def short_text(text: str) -> str:
    """The head and the tail of a long text; the text itself when it is short, or was made short before."""
    removed = len(text) - HEAD - TAIL
    marker = _MARKER.match(text, HEAD)
    if len(text) <= LONGEST or (marker is not None and len(text) - marker.end() <= TAIL):
        return text

    short = f"{text[:HEAD]}... [truncated: {removed} chars removed] ...{text[-TAIL:]}"
    return short if len(short) < len(text) else text


def _block(block: ContentBlock) -> ContentBlock:
    result = block.get("toolResult")
    if result is None:
        return block

    content = _fewer([_piece(piece) for piece in result["content"]])
    if len(content) == len(result["content"]) and all(a is b for a, b in zip(content, result["content"], strict=True)):
        return block

    return {**block, "toolResult": {**result, "content": content}}


def _fewer(pieces: list[Any]) -> list[Any]:
    """The first and the last of very many pieces, each of them short, with a note between them."""
    removed = len(pieces) - 2 * _PIECES
    if removed <= 1:
        return pieces

    note = {"text": f"... [truncated: {removed} pieces removed] ..."}
    return [*pieces[:_PIECES], note, *pieces[-_PIECES:]]


def _piece(piece: Any) -> Any:
    if "text" in piece:
        short = short_text(piece["text"])
        return piece if short is piece["text"] else {**piece, "text": short}

    if "json" in piece:
        text = json.dumps(piece["json"], ensure_ascii=False)
        short = short_text(text)
        return piece if short is text else {"text": short}

    for kind in _MEDIA:
        if kind in piece:
            return {"text": _placeholder(kind, piece[kind])}

    return piece


def _placeholder(kind: str, medium: Any) -> str:
    source = medium.get("source") if isinstance(medium, dict) else None
    data = source.get("bytes") if isinstance(source, dict) else None
    size = f", {len(data)} bytes" if isinstance(data, bytes | bytearray) else ""
    name = medium.get("format", "unknown format") if isinstance(medium, dict) else "unknown format"
    return f"[{kind} removed: {name}{size}]"
