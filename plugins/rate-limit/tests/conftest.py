"""Clocks that a test moves."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk.kits.aio.seam import Seam, use_seam


class Clock(Seam):
    """Passes as fast as it is waited for: a sleep moves the time to its end."""

    def __init__(self):
        self.seconds = 1_000.0
        self.slept = []
        self._lock = threading.Lock()

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        until = self.seconds + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        with self._lock:
            self.seconds = max(self.seconds, until)


class Stopped(Seam):
    """Stands still until the test moves it."""

    def __init__(self):
        self.seconds = 1_000.0
        self._sleepers = []

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.seconds + seconds, woken))
        await woken

    async def move(self, seconds):
        self.seconds += seconds
        for until, woken in self._sleepers:
            if until <= self.seconds and not woken.done():
                woken.set_result(None)

        await settle()


async def settle():
    """Lets everybody who can go on do so."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    with use_seam(Clock()) as seam:
        yield seam


@pytest.fixture
def stopped():
    with use_seam(Stopped()) as seam:
        yield seam


@pytest.fixture
def settled():
    return settle
