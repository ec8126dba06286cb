"""Text for terminals and pipes."""

from __future__ import annotations

import sys
from typing import Any

from ropewalk.kits.terminal import harmless


def write(text: str) -> None:
    """Writes to standard output at once; a character that the output cannot encode becomes `?`.

    Raises:
        BrokenPipeError: The reader is gone.
    """
    stream = sys.stdout
    if stream is None:
        return  # it is closed, as in `ropewalk run ... >&-`

    if stream.isatty():
        text = harmless(text)

    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))

    stream.flush()


def text_of_result(result: Any) -> str:
    """The texts in a tool result; other content by its kind."""
    return "\n".join(_piece(block) for block in result.get("content", ()))


def _piece(block: dict[str, Any]) -> str:
    if "text" in block:
        return str(block["text"])

    key, value = next(iter(block.items()), ("nothing", None))
    return str(value) if key == "json" else f"<{key}>"
