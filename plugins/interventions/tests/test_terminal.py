"""Text for the terminal."""

from __future__ import annotations

import threading

import pytest

from ropewalk_interventions.terminal import ask_on_terminal, harmless

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


class Slow:
    """An input that notes how many wait for it at once."""

    closed = False

    def __init__(self):
        self.waiting = self.most = 0
        self.second = threading.Event()

    def readline(self):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting > 1:
            self.second.set()

        self.second.wait(0.05)
        self.waiting -= 1
        return "y\n"


def test_one_question_is_asked_at_a_time(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", slow := Slow())
    threads = [threading.Thread(target=ask_on_terminal, args=["sure?"]) for _ in range(3)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(30)

    assert slow.most == 1
    assert capsys.readouterr().err == "sure? " * 3
