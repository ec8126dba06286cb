"""Two tools that look at the files of this repository: `ropewalk run --tools examples/repo_tools.py "..."`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ropewalk import tool

ROOT: Final = Path(__file__).resolve().parent.parent
MOST_MATCHES: Final = 20
LARGEST_FILE: Final = 1_000_000  # bytes


def inside(path: str) -> Path:
    """The place that `path` names, which has to be in the repository and not hidden."""
    place = (ROOT / path.strip().lstrip("/")).resolve()
    if not place.is_relative_to(ROOT) or is_hidden(place):
        raise ValueError(f"{path} is outside the repository. Give a path like core/src.")

    if not place.exists():
        raise ValueError(f"There is no {path} in the repository. Give a path from its root, like core/src.")

    return place


def is_hidden(place: Path) -> bool:
    """Whether a part of the path, seen from the root, begins with a dot or is a cache."""
    return any(part.startswith(".") or part == "__pycache__" for part in place.relative_to(ROOT).parts)


def text_of(place: Path) -> str | None:
    """The text of a file; None when it is no text, too large or not readable."""
    try:
        return place.read_text(encoding="utf-8") if place.stat().st_size <= LARGEST_FILE else None
    except (OSError, UnicodeDecodeError):
        return None


@tool
def find_text(text: str, folder: str = ".") -> str:
    """Find the files in a folder that contain a text as whole words.

    Args:
        text: The text to look for, for example "def main".
        folder: The folder to search, with all its subfolders, for example "core".
    """
    pattern = re.compile(rf"(?<!\w){re.escape(text.strip())}(?!\w)")
    start = inside(folder)
    matches: list[str] = []
    for place in sorted(start.rglob("*")) if start.is_dir() else [start]:
        if not place.is_file() or is_hidden(place) or not place.resolve().is_relative_to(ROOT):
            continue

        found = pattern.search(text_of(place) or "")
        if found:
            matches.append(place.relative_to(ROOT).as_posix())

    if not matches:
        return f"No file in {folder} contains {text!r}."

    more = f"\n... and {len(matches) - MOST_MATCHES} more files" if len(matches) > MOST_MATCHES else ""
    return "\n".join(matches[:MOST_MATCHES]) + more


@tool
def count_lines(path: str) -> str:
    """Count the lines of one file.

    Args:
        path: The file, from the root of the repository, for example "core/README.md".
    """
    place = inside(path)
    text = text_of(place) if place.is_file() else None
    if text is None:
        raise ValueError(f"{path} is not a text file.")

    return f"{place.relative_to(ROOT).as_posix()} has {len(text.splitlines())} lines."
