"""A tool that many rows call."""

from __future__ import annotations

import pytest

from ropewalk import tool


@pytest.fixture
def recorder():
    """A tool that notes each run: `recorder.runs` is empty as long as it was not run."""

    @tool
    def note(value: int = 0) -> str:
        """Notes a value."""
        note.runs.append(value)
        return "noted"

    note.runs = []
    return note
