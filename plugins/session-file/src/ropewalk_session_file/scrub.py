"""Erasing in what was set aside: it cannot be read as records, and may say what a redaction has erased."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ropewalk.kits.log.records import Record
from ropewalk_session_file.files import opened, read_all, replace_with


def erased_texts(old: Sequence[Record], new: Sequence[Record]) -> set[str]:
    """The texts that records have lost, which stay in their places."""
    before = {(record.run, record.number, record.path): record for record in old}
    texts: set[str] = set()
    for record in new:
        known = before.get((record.run, record.number, record.path))
        if known is not None and known.kind == record.kind and known.data != record.data:
            texts |= set(_texts(known.data)) - set(_texts(record.data))

    return texts


def scrub(files: Sequence[Path], texts: set[str]) -> None:
    """Takes out of files each line that holds one of the texts, or that cannot be read.

    Raises:
        OSError: A file cannot be read or written.
    """
    for path in files:
        descriptor = opened(path, os.O_RDONLY)
        try:
            data = read_all(descriptor)
        finally:
            os.close(descriptor)

        kept = [line for line in data.split(b"\n") if _is_harmless(line, texts)]
        replace_with(path, b"".join(line + b"\n" for line in kept))


def _is_harmless(line: bytes, texts: set[str]) -> bool:
    try:
        said = list(_texts(json.loads(line)))
    except (ValueError, RecursionError):
        return False

    return not any(text in each for text in texts for each in said)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
