"""The content of a tool result: how much it is, and what it reads like as one text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ropewalk.kits.messages.estimate import block_tokens
from ropewalk.types import ToolResultContent

CHARS_PER_TOKEN: Final = 4
MEDIA: Final = ("image", "document", "video")
_TEXT_FORMATS: Final = frozenset({"csv", "html", "md", "txt"})


def is_small(result: Any, most_tokens: int) -> bool:
    """Whether a result needs no second look: nearly all are one short text."""
    content = result.get("content") if type(result) is dict else None
    if type(content) is not list or len(content) != 1 or type(content[0]) is not dict:
        return False

    text = content[0].get("text")
    return type(text) is str and len(text) <= most_tokens * CHARS_PER_TOKEN


def tokens_to_offload(content: Sequence[ToolResultContent]) -> int:
    """Tokens of what could be kept elsewhere; one image is free, for a tool that shows one has it looked at."""
    total, free = 0, True
    for piece in content:
        if "image" in piece and free:
            free = False
        else:
            total += tokens_of(piece)

    return total


def tokens_of(piece: ToolResultContent) -> int:
    """Tokens of one piece; 0 for one of a strange shape, which is left to whoever understands it."""
    try:
        return block_tokens(piece)
    except (AttributeError, TypeError, ValueError):
        return 0


def rendered(content: Sequence[ToolResultContent], first: int = 1) -> str:
    """The content as one text, a label in the place of what is none.

    Args:
        content: The pieces.
        first: The number of the first one, for the labels.
    """
    return "\n".join(_rendered(piece, number) for number, piece in enumerate(content, first))


def summary(content: Iterable[ToolResultContent]) -> str:
    """What the content consists of, such as `2 texts, 1 image`."""
    kinds = Counter(_kind(piece) for piece in content)
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()) or "nothing"


def is_media(piece: ToolResultContent) -> bool:
    """Whether a piece is shown as it is, not as text."""
    return any(kind in piece for kind in MEDIA) and _document_text(piece) is None


def _kind(piece: ToolResultContent) -> str:
    kind = next((kind for kind in ("text", "json", *MEDIA) if kind in piece), "piece")
    return {"json": "JSON value"}.get(kind, kind)


def _rendered(piece: ToolResultContent, number: int) -> str:
    if "text" in piece:
        return piece["text"]

    document = _document_text(piece)
    if document is not None:
        return f"{_label(piece, number)}\n{document}"

    if any(kind in piece for kind in MEDIA):
        return _label(piece, number)

    value: Any = piece.get("json", piece)
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _label(piece: ToolResultContent, number: int) -> str:
    kind = _kind(piece)
    medium: Any = piece.get(kind)
    medium = medium if isinstance(medium, Mapping) else {}
    data = _data(medium)
    said = [str(medium[key])[:100] for key in ("name", "format") if medium.get(key)]
    said += [f"{len(data):,} bytes"] if data is not None else []
    return f"[piece {number}: {', '.join([kind, *said])}]"


def _document_text(piece: ToolResultContent) -> str | None:
    """The text of a document that is one."""
    document: Any = piece.get("document")
    match document:
        case {"source": {"text": str(text)}}:
            return text
        case {"source": {"content": [*pieces]}}:
            return rendered(pieces) if all(isinstance(each, dict) and "text" in each for each in pieces) else None
        case {"format": kind} if str(kind) in _TEXT_FORMATS:
            data = _data(document)
            return None if data is None else data.decode("utf-8", "replace")
        case _:
            return None


def _data(medium: Mapping[str, Any]) -> bytes | None:
    source = medium.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    if isinstance(data, str):
        return data.encode("utf-8", "replace")

    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else None
