"""Stores in a folder of their own, records, and agents that keep a session there."""

from __future__ import annotations

import pytest

from ropewalk import Agent, Record
from ropewalk.kits.sessions import LogKey
from ropewalk_session_file import FileLogStore, FileSessionManager
from ropewalk_testing import ScriptedModel

KEY = LogKey("s", "a")


@pytest.fixture
def key():
    return KEY


@pytest.fixture
def store(tmp_path):
    return FileLogStore(tmp_path / "sessions")


@pytest.fixture
def log(store):
    """The file of the log `key`."""
    return store.root / "s" / "a" / "log.jsonl"


@pytest.fixture
def notes():
    """Makes records that say something: `notes(3)`, `notes(2, start=3)`."""

    def make(count, start=0, text="note", run="r"):
        return [Record(run, number, "once", {"key": f"{text} {number}", "value": None}, 1.0) for number in
                range(start, start + count)]  # fmt: skip

    return make


@pytest.fixture
def make_agent(tmp_path):
    """Makes an agent with a session: `make_agent("hello", session="s", **parameters)`."""

    def make(*turns, session="s", options=None, **parameters):
        manager = FileSessionManager(session, tmp_path / "sessions", **(options or {}))
        model = ScriptedModel(turns[0] if turns and callable(turns[0]) else turns)
        return Agent(model=model, callback_handler=None, session_manager=manager, **parameters)

    return make
