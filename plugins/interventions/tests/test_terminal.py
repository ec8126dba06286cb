"""Text for the terminal."""

from __future__ import annotations

import pytest

from ropewalk_interventions.terminal import harmless

SHOWN = [
    ("plain é", "plain é"),
    ("a\x1b[1m", "a\\x1b[1m"),
    ("\u202eb", "\\u202eb"),
    ("a\nb", "a\\nb"),
    ("\x9b", "\\x9b"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_control_characters_are_written_out(text, shown):
    assert harmless(text) == shown
