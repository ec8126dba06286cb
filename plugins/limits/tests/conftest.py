"""Time that passes when a test says so."""

from __future__ import annotations

import pytest

from ropewalk.kits.aio.seam import Seam, use_seam


class Clock(Seam):
    """Stands still until it is set."""

    def __init__(self):
        self.now = 1000.0
        self.monotonic = lambda: self.now


@pytest.fixture
def clock():
    with use_seam(Clock()) as seam:
        yield seam
