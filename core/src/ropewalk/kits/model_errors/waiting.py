"""How long a provider asks to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from ropewalk.kits.aio.seam import current_seam


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date.

    Args:
        headers: Of the response; the case of their names does not matter.

    Returns:
        At least 0, or None when nothing that can be understood is said.
    """
    found = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000

    said = found.get("retry-after")
    seconds = _number(said)
    return seconds if seconds is not None else _until(said)


def _number(said: str | None) -> float | None:
    try:
        number = float(said or "")
    except (TypeError, ValueError):
        return None

    return number if math.isfinite(number) and number >= 0 else None


def _until(said: str | None) -> float | None:
    try:
        date = parsedate_to_datetime(said or "")
    except (TypeError, ValueError, IndexError, OverflowError):
        return None

    moment = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - current_seam().time())
