"""Where two requests differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final


class _Absent:
    def __repr__(self) -> str:
        return "(not there)"


ABSENT: Final = _Absent()
"""Stands for a key or an item that one side lacks."""


class Comparison:
    """Compares requests, except for some fields.

    Args:
        ignore: Paths of fields that may differ, such as `system[0].text`; `[*]` is any item.
    """

    def __init__(self, ignore: Iterable[str] = ()) -> None:
        patterns = [re.escape(path).replace(r"\[\*\]", r"\[\d+\]") for path in ignore]
        self._ignored = re.compile("|".join(f"(?:{each})" for each in patterns)) if patterns else None

    def first(self, recorded: Any, current: Any, path: str = "") -> tuple[str, Any, Any] | None:
        """The first difference: its path and both values; None if there is none."""
        if self._ignored is not None and self._ignored.fullmatch(path):
            return None
        if isinstance(recorded, dict) and isinstance(current, dict):
            return self._in_dicts(recorded, current, path)
        if isinstance(recorded, list) and isinstance(current, list):
            return self._in_lists(recorded, current, path)
        if type(recorded) is type(current) and recorded == current:
            return None

        return path or "the request", recorded, current

    def _in_dicts(self, recorded: dict[str, Any], current: dict[str, Any], path: str) -> tuple[str, Any, Any] | None:
        for key in [*recorded, *(key for key in current if key not in recorded)]:
            inner = f"{path}.{key}" if path else key
            found = self.first(recorded.get(key, ABSENT), current.get(key, ABSENT), inner)
            if found is not None:
                return found

        return None

    def _in_lists(self, recorded: list[Any], current: list[Any], path: str) -> tuple[str, Any, Any] | None:
        for place in range(max(len(recorded), len(current))):
            before = recorded[place] if place < len(recorded) else ABSENT
            now = current[place] if place < len(current) else ABSENT
            found = self.first(before, now, f"{path}[{place}]")
            if found is not None:
                return found

        return None
