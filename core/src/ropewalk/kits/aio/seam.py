"""Clock, ids and sleep: the one place where a run touches time and chance, so that tests and replays can replace it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


class Seam:
    """The real clock, random ids, real sleep. Subclass it to replace them."""

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    monotonic: Callable[[], float] = staticmethod(perf_counter)
    """Seconds on a clock that never goes back."""

    def new_id(self, prefix: str) -> str:
        """A new unique id, `prefix` and 16 hexadecimal digits."""
        return f"{prefix}{os.urandom(8).hex()}"

    async def sleep(self, seconds: float) -> None:
        """Waits; can be cancelled."""
        await asyncio.sleep(seconds)


_current = Seam()


def current_seam() -> Seam:
    """The seam that new runs use."""
    return _current


@contextmanager
def use_seam(seam: Seam) -> Iterator[Seam]:
    """Replaces the seam of this process for the length of a `with` block."""
    global _current  # noqa: PLW0603 - one seam per process is the point
    before, _current = _current, seam
    try:
        yield seam
    finally:
        _current = before
