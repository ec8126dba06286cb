"""Mends what models often get wrong although they mean the right thing: lists and objects sent as JSON text."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails

MOST_OBJECTS: Final = 20
"""How many places of a text are tried that could be the start of an object."""


def mended(value: Any, errors: Iterable[ErrorDetails]) -> Any:
    """A copy of the value in which texts that were refused, and hold a JSON list or object, are parsed.

    Args:
        value: What was refused; it is not written to.
        errors: Why.

    Returns:
        The copy, or None when there is nothing to mend.
    """
    changed = False
    root = [copy.deepcopy(value)]
    for error in errors:
        if isinstance(error["input"], str):
            parsed = _container(error["input"])
            changed = (parsed is not None and _put(root, error["loc"], error["input"], parsed)) or changed

    return root[0] if changed else None


def _container(text: str) -> list[Any] | dict[str, Any] | None:
    if not text.lstrip().startswith(("[", "{")):
        return None

    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None

    return parsed if isinstance(parsed, list | dict) else None


def _put(root: list[Any], path: Sequence[int | str], text: str, parsed: Any) -> bool:
    """Replaces the text at a path; steps that the value does not have are names of union members."""
    holder: Any = root
    key: Any = 0
    for step in path:
        inside = holder[key]
        if (isinstance(inside, dict) and step in inside) or (
            isinstance(inside, list) and isinstance(step, int) and step < len(inside)
        ):
            holder, key = inside, step

    if holder[key] != text:
        return False

    holder[key] = parsed
    return True


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand in a text, outermost ones only."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(MOST_OBJECTS):
        if at < 0:
            return

        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found

        at = text.find("{", end)
