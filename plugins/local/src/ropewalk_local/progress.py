"""Tells people how far a download is: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from ropewalk_local.errors import readable

_log = logging.getLogger("ropewalk.local")
_WIDTH: Final = 30
_REDRAW_SECONDS: Final = 0.1
_LOG_STEP: Final = 0.1


class Progress:
    """Progress of one file.

    Args:
        what: Name to show.
        total: Bytes of the whole file.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._tty = sys.stderr is not None and sys.stderr.isatty()
        self._drawn = 0.0
        self._logged = -1.0
        self._open = False

    def update(self, done: int) -> None:
        """Shows that `done` bytes of the file are there and checked."""
        if self._tty:
            self._draw(done)
        elif done / self._total >= self._logged + _LOG_STEP or (done == self._total and self._logged < 1):
            self._logged = done / self._total
            _log.info("model %s: %s of %s", self._what, readable(done), readable(self._total))

    def _draw(self, done: int) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS and done < self._total:
            return

        self._drawn, self._open = now, True
        filled = _WIDTH * done // self._total
        bar = "#" * filled + "." * (_WIDTH - filled)
        sys.stderr.write(f"\r{self._what} [{bar}] {100 * done // self._total:3d}% of {readable(self._total)}")
        sys.stderr.flush()

    def close(self) -> None:
        """Ends the bar's line."""
        if self._open:
            self._open = False
            sys.stderr.write("\n")
            sys.stderr.flush()
