"""Time that does not pass: waits are noted instead."""

from __future__ import annotations

import pytest

from ropewalk.kits.aio.seam import Seam, use_seam


class Waits(Seam):
    """Returns from every sleep at once, and remembers how long it would have been."""

    def __init__(self):
        self.seconds = []

    async def sleep(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def waits():
    """The seconds that runs have waited."""
    with use_seam(Waits()) as seam:
        yield seam.seconds
