"""Finds a model's pattern in a text of any size, in bounded time.

Python's regular expressions cannot be interrupted, and while one is searched for, nothing else in the process runs. A
pattern with repetitions in repetitions, or with many parts that may be there or not, may take for ever. Such patterns
are refused, and the more repetitions and choices a pattern has, the smaller are the pieces of a long line in which it
is looked for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

WINDOWS: Final = (4_000, 2_000, 800, 250)
"""Characters that are searched at once, by the number of repetitions in the pattern: about a second at the worst."""

AROUND: Final = 200
"""Characters that are shown before and after a match in a long line."""

LONG_LINE: Final = 2_000
_SECONDS: Final = 2.0
_REPEATED: Final = re.compile(r"[*+]|\{\d*,\d*\}|\{\d+\}")
_MANNERS: Final = ("?", "+")
"""What may stand behind a repetition, and makes it lazy or possessive."""

_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z]*x")
"""Where blanks mean nothing, a repetition may stand apart from what it repeats."""

_BACK: Final = tuple("123456789")
_STEPS: Final = 4_000_000
_LEAST: Final = 100
_MANY: Final = 10**9
_PLAIN: Final = re.compile(r"[^\\\[\](){}.*+?^$|]*")


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of a search.

    Attributes:
        text: The lines; empty when there are none.
        complete: Whether all the text was searched.
        window: Longer lines were searched in pieces of that size; matches of more than half of it may be missed.
    """

    text: str
    complete: bool
    window: int


class PatternError(ValueError):
    """The pattern cannot be searched for; the text is for the model."""


def found_in(lines: Sequence[str], pattern: str, context_lines: int, most: int, first: int = 1) -> Found:
    """The lines that match, numbered, with the lines around them.

    Of lines that are very long only the surroundings of each match are shown.

    Args:
        lines: The text.
        pattern: A regular expression; what is none is searched for as it stands.
        context_lines: How many lines before and after.
        most: Characters after which no more is looked for.
        first: The number of the first line.

    Returns:
        What was found.

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
            return Found("\n".join(out), at == last, window)

    return Found("\n".join(out), True, window)


def _matches(line: str, wanted: re.Pattern[str], window: int, deadline: float) -> Iterator[str]:
    """What is shown of a line, once for each stretch of matches; nothing when it does not match."""
    start, end = -1, -1
    for match in _found(line, wanted, window, deadline):
        if len(line) <= LONG_LINE:
            yield line
            return

        if start >= 0 and match.start() > end + AROUND:
            yield _excerpt(line, start, end)
            start = -1

        start = match.start() if start < 0 else min(start, match.start())
        end = max(end, match.end())

    if start >= 0:
        yield _excerpt(line, start, end)


def _found(line: str, wanted: re.Pattern[str], window: int, deadline: float) -> Iterator[re.Match[str]]:
    """The matches in a line, some of them twice."""
    anchored = "$" in wanted.pattern or "\\Z" in wanted.pattern or "\\b" in wanted.pattern.lower()
    for first, last in _pieces(len(line), window):
        if time.monotonic() > deadline:
            raise PatternError(f"searching for {wanted.pattern!r:.200} takes too long: use a simpler pattern")

        for match in wanted.finditer(line, first, last):
            if not (anchored and match.end() == last < len(line)):  # the end of a piece is not the end of the line
                yield match


def _pieces(length: int, window: int) -> Iterator[tuple[int, int]]:
    """Where overlapping pieces of a line begin and end."""
    step = window // 2
    for first in range(0, max(length - step, 1), step):
        yield first, min(first + window, length)


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

    shape = None if _VERBOSE.search(pattern) else _shape(pattern)
    window = 0 if shape is None else _window(*shape)
    if not window:
        raise PatternError(
            f"the pattern {pattern!r:.200} may take for ever: use at most {len(WINDOWS) - 1} of * and +, few of ? and "
            "|, and no repetition of a group that has repetitions, alternatives or optional parts in it"
        )

    return wanted, window


def _window(repetitions: int, ways: int) -> int:
    """In how many characters at once such a pattern may be searched for; 0 when they would be too few."""
    if repetitions >= len(WINDOWS):
        return 0

    most, power = WINDOWS[repetitions], repetitions + 1
    if ways == 1:
        return most

    fits = int((max(most**power, _STEPS) / ways) ** (1 / power))
    return min(fits, most) if fits >= _LEAST else 0


def _shape(pattern: str) -> tuple[int, int] | None:
    """How many repetitions a pattern has, and in how many ways its optional and alternative parts can be taken.

    A reference back to a group counts as a repetition, for it is compared at each attempt.

    Returns:
        The two; None when a repetition is of a group that has such parts, or repetitions, in it.
    """
    count, ways, at = 0, 1, 0
    groups = [False]  # whether each open group has such
    branches = [1]
    closed = False  # whether the group that ends right here has
    while at < len(pattern):
        char = pattern[at]
        repeated = _REPEATED.match(pattern, at)
        if repeated is not None or char == "?":
            if closed and repeated is not None:
                return None

            count, ways = (count, ways * 2) if repeated is None else (count + 1, ways)
            groups[-1], closed = True, False
            at = at + 1 if repeated is None else repeated.end()
            at += pattern[at : at + 1] in _MANNERS
            continue

        closed = False
        if char == "\\":
            count += pattern[at + 1 : at + 2] in _BACK
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char == "(":
            groups.append(False)
            branches.append(1)
            count += pattern.startswith("(?P=", at)
            at += pattern.startswith("(?", at)
        elif char == "|":
            groups[-1] = True
            branches[-1] += 1
        elif char == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] = groups[-1] or closed
            ways *= branches.pop()

        ways = min(ways, _MANY)
        at += 1

    return count, min(ways * branches[0], _MANY)


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
