"""Fixtures for tests of session plugins. A conftest imports those that it wants to have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ropewalk import Agent, Record
from ropewalk.kits.sessions import LogKey
from ropewalk_testing.scripted import ScriptedModel


@pytest.fixture
def key() -> LogKey:
    """A log."""
    return LogKey("order-17", "default")


@pytest.fixture
def records() -> Callable[..., list[Record]]:
    """Makes records of a run: `records(3)`, `records(2, after=3)`."""

    def make(count: int, after: int = 0, run: str = "run_1", text: str = "Hello.") -> list[Record]:
        message = {"role": "user", "content": [{"text": text}]}
        return [
            Record(run, after + i, "message_appended", {"id": after + i, "message": message}, 1.5 + after + i)
            for i in range(count)
        ]

    return make


@pytest.fixture
def make_agent() -> Callable[..., Agent]:
    """An agent that prints nothing: `make_agent(manager, turns)`."""

    def make(manager: Any, turns: Any, **parameters: Any) -> Agent:
        return Agent(model=ScriptedModel(turns), callback_handler=None, session_manager=manager, **parameters)

    return make
