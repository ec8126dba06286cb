"""Text for terminals and pipes."""

from __future__ import annotations

import sys
from typing import Any

MOST_CHARACTERS = 200
"""Longest piece of arguments or of a result in one line of the display."""


def write(text: str) -> None:
    """Writes to standard output at once; a character that the output cannot encode becomes `?`.

    Raises:
        BrokenPipeError: The reader is gone.
    """
    stream = sys.stdout
    if stream.isatty():
        text = harmless(text)

    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))

    stream.flush()


def harmless(text: str) -> str:
    """The text without control characters: what a model or a tool says must not steer the terminal."""
    if text.isprintable():
        return text

    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def first_line(text: str, *, most: int | None = MOST_CHARACTERS) -> str:
    """The first line with something in it, cut to a length that fits a display."""
    line = harmless(next((line.strip() for line in text.splitlines() if line.strip()), ""))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def text_of_result(result: Any) -> str:
    """The texts in a tool result; other content by its kind."""
    return "\n".join(_piece(block) for block in result.get("content", ()))


def _piece(block: dict[str, Any]) -> str:
    if "text" in block:
        return str(block["text"])

    key, value = next(iter(block.items()), ("nothing", None))
    return str(value) if key == "json" else f"<{key}>"
