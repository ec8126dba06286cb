"""A conversation as one text, so that any model can read it: no tool blocks, no tools, no pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ropewalk.types import Message

_CAPS: Final = (8_000, 4_000, 2_000, 1_000, 500, 200)
"""Characters of one block: the largest with which the whole fits."""

_SPEAKERS: Final = {"user": "User", "assistant": "Assistant"}
_MEDIA: Final = ("image", "document", "video")


def transcript(messages: Sequence[Message], most: int | None = None) -> str:
    """The messages as a text in which each block says who it is of.

    To get down to `most` characters, long blocks lose their middle, and then the whole does.

    Args:
        messages: Part of a valid history.
        most: Characters that the text may have; None for every word.
    """
    names = {
        block["toolUse"]["toolUseId"]: block["toolUse"]["name"]
        for message in messages
        for block in message["content"]
        if "toolUse" in block
    }
    text = ""
    for cap in _CAPS if most is not None else (sys.maxsize,):
        text = "\n\n".join(line for message in messages for line in _lines(message, names, cap))
        if most is None or len(text) <= most:
            break

    return text if most is None else clipped(text, most)


def clipped(text: str, most: int) -> str:
    """The text, or its beginning and end with a note of what is left out between them."""
    if len(text) <= most:
        return text

    note = f" [... {len(text) - most} characters left out ...] "
    room = max(most - len(note), 2)
    head = room * 2 // 3
    return f"{text[:head]}{note}{text[head - room :]}"


def _lines(message: Message, names: Mapping[str, str], cap: int) -> Iterator[str]:
    speaker = _SPEAKERS[message["role"]]
    for block in message["content"]:
        if "toolUse" in block:
            use = block["toolUse"]
            yield f"Assistant calls {use['name']}: {clipped(_json(use['input']), cap)}"
        elif "toolResult" in block:
            result: Any = block["toolResult"]
            failed = " (an error)" if result.get("status") == "error" else ""
            said = clipped(" ".join(filter(None, map(_said, result["content"]))), cap)
            yield f"Result of {names.get(result['toolUseId'], 'a tool')}{failed}: {said or '(empty)'}"
        else:
            said = _said(block)
            if said:
                yield f"{speaker}: {clipped(said, cap)}"


def _said(block: Any) -> str:
    """What a block says; empty for thinking, cache points and what has no words."""
    if "text" in block:
        return str(block["text"]).strip()

    if "json" in block:
        return _json(block["json"])

    for kind in _MEDIA:
        if kind in block:
            medium = block[kind] if isinstance(block[kind], Mapping) else {}
            told = " ".join(str(medium[key]) for key in ("name", "format") if medium.get(key))
            return f"[{kind}{': ' if told else ''}{told}]"

    if "citationsContent" in block:
        return " ".join(filter(None, map(_said, block["citationsContent"].get("content", ()))))

    guarded = block.get("guardContent")
    text = guarded.get("text") if isinstance(guarded, Mapping) else None
    return str(text.get("text", "")) if isinstance(text, Mapping) else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
