"""Text for the terminal."""

from __future__ import annotations

import pytest

from ropewalk_interventions.terminal import harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 文", "plain é 文"),
        ("a\x1b[1m", "a\\x1b[1m"),
        ("\u202eb", "\\u202eb"),
        ("a\nb", "a\\nb"),
        ("\x9b", "\\x9b"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert harmless(text) == shown
