"""A run of 300 turns whose tools answer with up to 200,000 characters, in a window of 8,000 tokens."""

from __future__ import annotations

import pytest

from ropewalk import Agent, ContextWindowOverflowException, FileSessionManager, tool
from ropewalk.kits.messages.estimate import estimate_tokens, tokens_around
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

WINDOW = 8_000
TURNS = 300
SIZES = (40, 900, 3_000, 5_900, 20_000, 200_000, 5_500, 60_000, 10, 150_000)
TASK = "Read every file of the archive and tell me which of them names the harbour master."


@tool
def read_file(number: int) -> str:
    """Reads a file of the archive.

    Args:
        number: Which.
    """
    line = f"file {number}: nothing of note. "
    size = SIZES[number % len(SIZES)]
    return (line * (size // len(line) + 1))[:size]


class Reader:
    """A model that reads one file after the other; it counts each request as a provider would."""

    def __init__(self, factor=1, *, tells=True):
        self.factor = factor
        self.tells = tells
        self.overflows = 0
        self.turns = 0
        self.summaries = 0
        self.sizes = []
        self.without_task = []

    def __call__(self, request):
        estimate = estimate_tokens(request.messages) + tokens_around(request.system, request.tool_specs)
        size = estimate * self.factor
        if size > WINDOW:
            self.overflows += 1
            return ContextWindowOverflowException(f"{size} tokens are more than {WINDOW}")

        self.sizes.append(size)
        usage = (size, 20) if self.tells else None
        if request.purpose == "summarize":
            self.summaries += 1
            return turn(f"Up to file {self.turns} there was nothing of note.", usage=usage)

        if not any(TASK in block.get("text", "") for message in request.messages for block in message["content"]):
            self.without_task.append(self.turns)

        self.turns += 1
        if self.turns > TURNS:
            return turn("None of them does.", usage=usage)

        return turn(use("read_file", {"number": self.turns}), usage=usage)


@pytest.fixture
def make_reader(tmp_path):
    def make(script):
        return Agent(
            model=ScriptedModel(script, record=False, context_window=WINDOW),
            tools=[read_file],
            callback_handler=None,
            context_manager="auto",
            session_manager=FileSessionManager(session_id="long", storage_dir=tmp_path),
        )

    return make


def test_it_finishes_within_the_window_with_its_task_and_can_be_restored(make_reader):
    reader = Reader()
    agent = make_reader(reader)

    result = agent(TASK)

    assert str(result) == "None of them does.\n"
    assert reader.turns == TURNS + 1
    assert reader.summaries > 10
    assert reader.overflows == 0
    assert reader.without_task == []
    assert_valid_history(agent.messages)

    restored = make_reader([])

    assert list(restored.messages) == list(agent.messages)
    assert restored.history.ids == agent.history.ids


def test_it_finishes_where_tokens_are_twice_as_many_and_nobody_tells(make_reader):
    reader = Reader(factor=2, tells=False)
    agent = make_reader(reader)

    result = agent(TASK)

    assert str(result) == "None of them does.\n"
    assert reader.overflows > 10
    assert reader.without_task == []
    assert_valid_history(agent.messages)
