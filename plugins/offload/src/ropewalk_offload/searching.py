"""Finds a model's pattern in a text of any size, in bounded time.

Python's regular expressions cannot be interrupted, and a pattern with repetitions in repetitions may take for ever. So
such patterns are refused, and the more repetitions a pattern has, the smaller are the pieces of a long line in which it
is looked for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Final

WINDOWS: Final = (4_000, 4_000, 500, 120)
"""Characters that are searched at once, by the number of repetitions in the pattern."""

AROUND: Final = 200
"""Characters that are shown before and after a match in a long line."""

LONG_LINE: Final = 2_000
_SECONDS: Final = 2.0
_REPEATED: Final = re.compile(r"[*+]|\{\d*,\d*\}|\{\d+\}")
_PLAIN: Final = re.compile(r"[^\\\[\](){}.*+?^$|]*")


class PatternError(ValueError):
    """The pattern cannot be searched for; the text is for the model."""


def found_in(lines: Sequence[str], pattern: str, context_lines: int, most: int, first: int = 1) -> tuple[str, bool]:
    """The lines that match, numbered, with the lines around them.

    Of lines that are very long only the surroundings of each match are shown.

    Args:
        lines: The text.
        pattern: A regular expression; what is none is searched for as it stands.
        context_lines: How many lines before and after.
        most: Characters after which no more is looked for.
        first: The number of the first line.

    Returns:
        What was found, empty for nothing; and whether all of it was.

    Raises:
        PatternError: The pattern may take for ever, or took too long.
    """
    wanted, window = _compiled(pattern)
    out: list[str] = []
    size, shown, last = 0, -1, len(lines) - 1  # `shown`: the last line that is in `out`
    deadline = time.monotonic() + _SECONDS
    for at, line in enumerate(lines):
        excerpts = list(_matches(line, wanted, window, deadline))
        if not excerpts:
            continue

        begin, end = max(at - context_lines, shown + 1), min(at + context_lines, last)
        if 0 <= shown < begin - 1:
            out.append("--")

        fresh = [(number, _clipped(lines[number])) for number in range(begin, at)]
        if at > shown or len(line) > LONG_LINE:  # else it is there already, as context of the one before
            fresh += [(at, excerpt) for excerpt in excerpts]

        fresh += [(number, _clipped(lines[number])) for number in range(max(at, shown) + 1, end + 1)]
        out += [f"{number + first}: {text}" for number, text in fresh]
        size += sum(len(text) + 8 for _, text in fresh)
        shown = max(shown, end)
        if size > most:
            return "\n".join(out), at == last

    return "\n".join(out), True


def _matches(line: str, wanted: re.Pattern[str], window: int, deadline: float) -> Iterator[str]:
    """What is shown of a line, once for each stretch of matches; nothing when it does not match."""
    start, end = -1, -1
    for offset, piece in _pieces(line, window):
        if time.monotonic() > deadline:
            raise PatternError(f"searching for {wanted.pattern!r:.200} takes too long: use a simpler pattern")

        if len(line) <= LONG_LINE:
            if wanted.search(piece):
                yield line
                return

            continue

        for match in wanted.finditer(piece):
            one, other = offset + match.start(), offset + match.end()
            if start >= 0 and one <= end + AROUND:
                end = max(end, other)
                continue

            if start >= 0:
                yield _excerpt(line, start, end)

            start, end = one, other

    if start >= 0:
        yield _excerpt(line, start, end)


def _pieces(line: str, window: int) -> Iterator[tuple[int, str]]:
    """The line in overlapping pieces."""
    step = window // 2
    for offset in range(0, max(len(line) - step, 1), step):
        yield offset, line[offset : offset + window]


def _excerpt(line: str, start: int, end: int) -> str:
    first, last = max(start - AROUND, 0), min(end + AROUND, len(line))
    return f"[characters {first:,} to {last:,} of the line] {line[first:last]}"


def _clipped(line: str) -> str:
    return line if len(line) <= LONG_LINE else f"{line[: 2 * AROUND]} [... {len(line) - 2 * AROUND:,} characters more]"


def _compiled(pattern: str) -> tuple[re.Pattern[str], int]:
    if _PLAIN.fullmatch(pattern):
        return re.compile(re.escape(pattern)), WINDOWS[0]

    try:
        wanted = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return re.compile(re.escape(pattern)), WINDOWS[0]  # a small model's text with a bracket in it

    repetitions = _repetitions(pattern)
    if repetitions is None or repetitions >= len(WINDOWS):
        raise PatternError(
            f"the pattern {pattern!r:.200} may take for ever: use at most {len(WINDOWS) - 1} of * and +, and none "
            "on a group that has repetitions or alternatives in it"
        )

    return wanted, WINDOWS[repetitions]


def _repetitions(pattern: str) -> int | None:
    """How many repetitions a pattern has; None when one is of a group with repetitions or alternatives in it."""
    count, at = 0, 0
    groups = [False]  # whether each open group has such
    closed = False  # whether the group that ends right here has
    while at < len(pattern):
        char = pattern[at]
        repeated = _REPEATED.match(pattern, at)
        if repeated is not None:
            if closed:
                return None

            count += 1
            groups[-1], closed = True, False
            at = repeated.end()
            continue

        closed = False
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char == "(":
            groups.append(False)
        elif char == "|":
            groups[-1] = True
        elif char == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] = groups[-1] or closed

        at += 1

    return count


def _class_end(pattern: str, at: int) -> int:
    """Where the `]` stands that ends the character class."""
    at += 1
    if pattern[at : at + 1] == "^":
        at += 1

    if pattern[at : at + 1] == "]":
        at += 1

    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1

    return at
