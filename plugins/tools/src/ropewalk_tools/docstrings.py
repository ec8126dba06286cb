"""Reads what a docstring says about parameters, and gives the rest as the tool's description.

Google, numpy and Sphinx sections are known. Only the section about parameters is taken out: what a docstring says
about results, errors and use is for the model too, word for word.
"""

from __future__ import annotations

import inspect
import re
from typing import Final

_GOOGLE_HEADER: Final = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_NUMPY_HEADER: Final = re.compile(r"(Other )?Parameters\s*")
_NUMPY_RULE: Final = re.compile(r"-{3,}\s*")
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^:]*\))?\s*:(?:\s+(.*))?")
_NUMPY_ENTRY: Final = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX_ENTRY: Final = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_SPHINX_TYPE: Final = re.compile(r":type\s+\w+\s*:.*")


def split_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Takes a docstring apart.

    Args:
        docstring: As written, with its indentation, or None.

    Returns:
        The text without its section on parameters, and the description of each parameter that the section names.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        taken = _google(lines, at, found) or _numpy(lines, at, found) or _sphinx(lines, at, found)
        if not taken:
            kept.append(lines[at])

        at += taken or 1
        if taken and kept and not kept[-1].strip() and not "".join(lines[at : at + 1]).strip():
            kept.pop()  # a blank line on either side of the section: one is enough

    return "\n".join(kept).strip(), found


def _google(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Reads a section `Args:` and its indented block; answers how many lines it took."""
    if not _GOOGLE_HEADER.fullmatch(lines[at]):
        return 0

    end = at + 1
    # in a docstring that begins with the section, cleandoc has taken the indentation away
    while end < len(lines) and (lines[end][:1].isspace() or not lines[end].strip() if at else lines[end].strip()):
        end += 1

    block = inspect.cleandoc("\n".join(["", *lines[at + 1 : end]])).splitlines()
    entries = _entries(block, _GOOGLE_ENTRY)
    if not entries:
        return 0  # no section: prose that happens to begin so

    found.update(entries)
    return _with_blanks_kept(lines, at, end)


def _numpy(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Reads a section `Parameters` underlined with dashes; answers how many lines it took."""
    if at + 1 >= len(lines) or not (_NUMPY_HEADER.fullmatch(lines[at]) and _NUMPY_RULE.fullmatch(lines[at + 1])):
        return 0

    end = at + 2
    while end < len(lines) and not (end + 1 < len(lines) and _NUMPY_RULE.fullmatch(lines[end + 1])):
        end += 1

    for names, text in _entries(lines[at + 2 : end], _NUMPY_ENTRY).items():
        found.update({name.strip(" *"): text for name in names.split(",")})

    return _with_blanks_kept(lines, at, end)


def _sphinx(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Reads one field `:param name:` (or drops a `:type name:`) with its indented lines; answers how many it took."""
    entry = _SPHINX_ENTRY.fullmatch(lines[at])
    if not entry and not _SPHINX_TYPE.fullmatch(lines[at]):
        return 0

    end = at + 1
    while end < len(lines) and lines[end].strip() and lines[end][0].isspace():
        end += 1

    if entry:
        found[entry[1]] = _joined([entry[2], *lines[at + 1 : end]])

    return end - at


def _entries(block: list[str], head: re.Pattern[str]) -> dict[str, str]:
    """The entries of a block: an unindented head line each, and the indented lines below it."""
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in block:
        if line[:1].isspace() or not line:
            current.append(line)
        elif match := head.fullmatch(line):
            current = texts.setdefault(match[1], [])
            current.extend(match.groups()[1:] and [match[2] or ""])
        else:
            current.append(line)  # a continuation that lost its indentation

    return {name: _joined(lines) for name, lines in texts.items()}


def _joined(lines: list[str]) -> str:
    """One text of several lines, on one line; a blank line stays a paragraph."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _with_blanks_kept(lines: list[str], at: int, end: int) -> int:
    """Length of a section without the blank lines at its end: they part what stays."""
    while end > at and not lines[end - 1].strip():
        end -= 1

    return end - at
