from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_testing import ScriptedModel


@pytest.fixture
def make_agent():
    """Builds an agent that prints nothing: `make_agent(turns, **parameters)`; turns may be a model."""

    def make(turns, **parameters):
        model = turns if hasattr(turns, "stream") else ScriptedModel(turns)
        return Agent(model=model, **{"callback_handler": None, **parameters})

    return make


@pytest.fixture
def results_of():
    """The tool results in an agent's history as (status, text or json) pairs, in order."""

    def collect(agent):
        blocks = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
        return [
            (block["toolResult"]["status"], next(iter(block["toolResult"]["content"][0].values()))) for block in blocks
        ]

    return collect
