from __future__ import annotations

import logging
import sys

import pytest

from ropewalk_local.errors import readable
from ropewalk_local.progress import Progress


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_a_terminal_gets_a_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress("tiny", 3000)
    progress.update(1500)
    progress.update(3000)
    progress.close()

    assert "\rtiny [###############...............]  50% of 3.0 kB" in terminal.text
    assert terminal.text.endswith("[##############################] 100% of 3.0 kB\n")


def test_elsewhere_there_is_a_log_line_per_tenth(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="ropewalk.local"):
        progress = Progress("tiny", 1000)
        for done in range(1, 1001):
            progress.update(done)

        progress.close()

    assert 10 <= len(caplog.records) <= 12
    assert caplog.messages[-1] == "model tiny: 1.0 kB of 1.0 kB"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (98362432, "98.4 MB"), (1117320768, "1.1 GB")]
)
def test_sizes_are_readable(size, text):
    assert readable(size) == text
