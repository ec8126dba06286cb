"""Text that may be shown on a terminal, and columns of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MOST_CHARACTERS: Final = 200
"""Longest piece of arguments or of a result in one line of a display."""


def harmless(text: str) -> str:
    """The text without what would steer the terminal: what a model or a tool says must not.

    That is control characters but for newline and tab, marks that turn the direction of the text around, and halves of
    characters. Other invisible characters, such as those that join emoji, are part of what is said.
    """
    return text if text.isprintable() else _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def first_line(text: str, *, most: int | None = MOST_CHARACTERS) -> str:
    """The first line with something in it, cut to a length that fits a display."""
    line = harmless(next((line.strip() for line in text.splitlines() if line.strip()), ""))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with a head and rows below it, in columns that are as wide as what stands in them."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
