"""Text that may be shown on a terminal, and columns of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_CHARACTERS: Final = 200
"""Longest piece of arguments or of a result in one line of a display."""


def harmless(text: str) -> str:
    """The text without control characters: what a model or a tool says must not steer the terminal."""
    if text.isprintable():
        return text

    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def first_line(text: str, *, most: int | None = MOST_CHARACTERS) -> str:
    """The first line with something in it, cut to a length that fits a display."""
    line = harmless(next((line.strip() for line in text.splitlines() if line.strip()), ""))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with a head and rows below it, in columns that are as wide as what stands in them."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
