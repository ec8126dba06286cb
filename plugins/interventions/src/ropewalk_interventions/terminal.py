"""Asks on the terminal."""

from __future__ import annotations

import sys
import threading
from typing import Final

_one_at_a_time: Final = threading.Lock()


def ask_on_terminal(prompt: str) -> str | None:
    """Writes the prompt to standard error and reads a line; None when the input is at its end.

    One question at a time, for tools that run at once ask at once.
    """
    with _one_at_a_time:
        if sys.stdin is None or sys.stdin.closed:
            return None

        sys.stderr.write(f"{harmless(prompt)} ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        return line.strip() if line else None


def harmless(text: str) -> str:
    """The text with its control characters written out: what a model says must not steer the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
