"""What goes wrong with a cassette. None of it is a `ModelError`: nothing should repeat it or try another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ropewalk.errors import RopewalkError

AGAIN: Final = "run pytest --record-cassettes, or Cassette(path, model=...)"
_MOST: Final = 160


class CassetteError(RopewalkError, ValueError):
    """A cassette cannot be read, written or used as asked."""


class MissingCassetteError(CassetteError):
    """There is no cassette at this path.

    Attributes:
        path: Where it should be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"there is no cassette {path}: to record it, {AGAIN}, with access to the real model")


class CassetteDrift(RopewalkError):  # noqa: N818 - reads as the fact it states
    """The run is no longer the one that was recorded.

    Attributes:
        path: The cassette.
        call: The number of the model call, from 1.
        field: What differs, such as `messages[2].content[0].text`.
        recorded: The value in the recording.
        current: The value now.
    """

    def __init__(self, path: Path, call: int, field: str, recorded: Any, current: Any, *, fact: str = "") -> None:
        self.path = path
        self.call = call
        self.field = field
        self.recorded = recorded
        self.current = current
        before, now = _shown(recorded, current)
        differs = fact or f"{field} differs from the recording\n  recorded: {before}\n  now:      {now}\n"
        super().__init__(f"cassette {path}, model call {call}: {differs}If that is meant, record it again: {AGAIN}")


def _shown(recorded: Any, current: Any) -> tuple[str, str]:
    """Both values, cut to where they differ."""
    if isinstance(recorded, str) and isinstance(current, str):
        pairs = zip(recorded, current, strict=False)
        same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(recorded), len(current)))
        return _window(recorded, same), _window(current, same)

    return _cut(repr(recorded)), _cut(repr(current))


def _window(text: str, at: int) -> str:
    if len(text) <= _MOST:
        return repr(text)

    start = max(0, at - _MOST // 2)
    piece = repr(text[start : start + _MOST])
    return f"{'...' if start else ''}{piece}{'...' if start + _MOST < len(text) else ''} (at character {at})"


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _MOST else f"{text[: 2 * _MOST]}..."
