"""What stays of a large result: its beginning and end, how much there was, and where the rest is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.types import ToolResultContent
from ropewalk_offload.content import CHARS_PER_TOKEN, rendered, summary

HEAD: Final = 0.6
"""The share of the preview that is the beginning; the rest is the end."""

AROUND: Final = 120
"""Tokens that stand around a preview at most."""

_SEARCHED: Final = 0.25
"""How much of the beginning, and of the end, may be given up so that it ends, or begins, with a line."""


def preview(content: Sequence[ToolResultContent], tokens: int, preview_tokens: int, reference: str, tool: str) -> str:
    """The text that stands in the place of a result.

    Args:
        content: The result's content.
        tokens: How many tokens it has, to be told.
        preview_tokens: How many of them are shown.
        reference: Where all of it is kept.
        tool: The tool that reads it; empty when there is none.
    """
    text = rendered(content)
    shown = shortened(text, preview_tokens * CHARS_PER_TOKEN)
    how = f"; use {tool} with it to read by pattern, line_range or offset" if tool else ""
    return (
        f"[Offloaded: {summary(content)}, about {tokens:,} tokens, {len(text):,} characters in "
        f"{text.count(chr(10)) + 1:,} lines]\n{shown}\n[Reference: {reference}{how}]"
    )


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text, and a line between that says what is left out.

    Args:
        text: The text.
        most: How many characters of it are shown.
    """
    if len(text) <= most:
        return text

    begin = int(most * HEAD)
    head, tail = _to_a_line(text[:begin]), _from_a_line(text[len(text) - (most - begin) :])
    left_out = text[len(head) : len(text) - len(tail)]
    lines = ""
    if "\n" in left_out:
        first = head.count("\n") + 1
        lines = f", lines {first:,} to {first + left_out.count(chr(10)) - left_out.endswith(chr(10)):,}"

    gap = "" if not head or head.endswith("\n") else "\n"
    return f"{head}{gap}[... {len(left_out):,} characters{lines}, are left out ...]\n{tail}"


def _to_a_line(piece: str) -> str:
    """The piece up to its last newline, unless that is far from its end."""
    at = piece.rfind("\n", int(len(piece) * (1 - _SEARCHED)))
    return piece if at < 0 else piece[: at + 1]


def _from_a_line(piece: str) -> str:
    """The piece from its first newline on, unless that is far from its beginning."""
    return piece[piece.find("\n", 0, int(len(piece) * _SEARCHED)) + 1 :]
