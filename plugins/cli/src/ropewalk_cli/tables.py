"""Columns of text."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with a head and rows below it, in columns that are as wide as what stands in them."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
