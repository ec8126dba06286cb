from __future__ import annotations

import pytest
from pydantic import BaseModel

from ropewalk import Agent
from ropewalk_testing import ScriptedModel


class P(BaseModel):
    """A pair."""

    n: int
    s: str


class Schooled(ScriptedModel):
    """A model that can be held to a schema."""

    supports_output_schema = True


@pytest.fixture
def pair():
    """The output model of most tests."""
    return P


@pytest.fixture
def make_agent():
    """`make_agent(turns, native=False, **parameters)`: a quiet agent and its model."""

    def make(turns, *, native=False, **parameters):
        model = (Schooled if native else ScriptedModel)(turns)
        return Agent(model, **{"callback_handler": None, **parameters}), model

    return make
