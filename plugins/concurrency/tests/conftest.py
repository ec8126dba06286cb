"""Agents whose model is silent until the test lets it speak."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import ScriptedModel, turn

PATIENCE = 10
"""Seconds after which something that should have happened is given up as failed."""


class Clock(Seam):
    """Stands still until it is set."""

    def __init__(self):
        self.now = 1000.0
        self.monotonic = lambda: self.now


@pytest.fixture
def clock():
    with use_seam(Clock()) as seam:
        yield seam


@pytest.fixture
def silent_agent():
    """An agent whose first answer waits for `model.release()`."""

    def make(first="first", *more, error=None, **parameters):
        model = ScriptedModel([turn(first, stall=True, stall_first=True, error=error), *more])
        return Agent(model=model, callback_handler=None, **parameters)

    return make


async def until(condition):
    """Waits until something has come about, in this thread or another."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for may be in another thread
            await asyncio.sleep(0.001)


@pytest.fixture
def waiting_for():
    """Waits until so many callers wait for the call under way: `await waiting_for(agent, 2)`."""

    def seats(agent):
        (plugin,) = (plugin for plugin in agent.hooks.plugins if plugin.name == "concurrency")
        book = plugin._books._by_agent.get(agent)
        return sum(len(flight.seats) for flight in book._flights) if book is not None else 0

    async def wait(agent, count):
        await until(lambda: seats(agent) == count)

    return wait


@pytest.fixture
def eventually():
    return until
