"""What tests across packages share: quiet agents, three ways to call one, and views of what happened."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import Agent
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import ScriptedModel

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""


def called(agent, prompt=None, **options):
    return agent(prompt, **options)


def awaited(agent, prompt=None, **options):
    return asyncio.run(agent.invoke_async(prompt, **options))


def streamed(agent, prompt=None, **options):
    async def drain():
        last = {}
        async for event in agent.stream_async(prompt, **options):
            last = event

        return last["result"]

    return asyncio.run(drain())


@pytest.fixture(params=[called, awaited, streamed], ids=lambda entry: entry.__name__)
def ask(request):
    """One way to call an agent: `ask(agent, prompt)` gives the result. Tests that use it run once for each way."""
    return request.param


@pytest.fixture
def make_agent():
    """Builds an agent that prints nothing: `make_agent(turns, **parameters)` gives the agent and its model."""

    def make(turns, **parameters):
        model = turns if hasattr(turns, "stream") else ScriptedModel(turns)
        return Agent(model=model, **{"callback_handler": None, **parameters}), model

    return make


@pytest.fixture
def shape():
    """Reduces messages to (role, content) pairs, which is what a provider sees of them."""

    def reduce(messages):
        return [(message["role"], message["content"]) for message in messages]

    return reduce


@pytest.fixture
def tool_results():
    """All tool results in a list of messages, in order."""

    def collect(messages):
        return [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]

    return collect


@pytest.fixture
def result_text():
    """The text of one tool result, its blocks joined."""

    def join(result):
        return " ".join(block["text"] for block in result["content"] if "text" in block)

    return join


@pytest.fixture
def events_of():
    """Runs an agent through `stream_async` and gives every event."""

    def run(agent, prompt=None, **options):
        async def drain():
            return [event async for event in agent.stream_async(prompt, **options)]

        return asyncio.run(drain())

    return run


class Waits(Seam):
    """Returns from every sleep at once, and remembers how long it would have been."""

    def __init__(self):
        self.seconds = []

    async def sleep(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def waits():
    """The seconds that runs have waited before they repeated something; none of them passes."""
    with use_seam(Waits()) as seam:
        yield seam.seconds


@pytest.fixture
def cancel_when():
    """Cancels an agent from another thread once an event is set: `cancel_when(event, agent)`."""
    threads = []

    def start(event, agent):
        def wait():
            if event.wait(PATIENCE):
                agent.cancel()

        threads.append(threading.Thread(target=wait))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(PATIENCE)
