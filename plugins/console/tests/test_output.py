"""Printing to outputs that are not up to it."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk_console.output import write


def test_text_is_printed_and_flushed(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8", write_through=False))

    write("héllo")

    assert raw.getvalue() == "héllo".encode()


@pytest.mark.parametrize(
    ("encoding", "text", "printed"),
    [("ascii", "naïve 😀", b"na?ve ?"), ("utf-8", "half \ud83d", b"half ?"), ("cp1252", "日本", b"??")],
)
def test_a_character_that_cannot_be_encoded_becomes_a_question_mark(monkeypatch, encoding, text, printed):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))

    write(text)

    assert raw.getvalue() == printed


def test_nothing_is_printed_without_an_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    write("a")

    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    write("a")


def test_a_pipe_without_a_file_behind_it_may_break(monkeypatch):
    class Broken(io.StringIO):
        def write(self, _text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Broken())

    write("a")


class Failing(io.StringIO):
    """An output that fails as a full disk does, or another way."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        if self.error is not None:
            raise self.error

        return super().write(text)


def test_an_output_that_cannot_be_written_ends_no_run(monkeypatch, caplog):
    monkeypatch.setattr(sys, "stdout", Failing(OSError(28, "No space left on device")))

    write("a")

    assert "standard output cannot be written ([Errno 28] No space left on device)" in caplog.text


def test_an_output_that_takes_nothing_just_now_is_written_to_again(monkeypatch):
    output = Failing(BlockingIOError(11, "would block"))
    monkeypatch.setattr(sys, "stdout", output)
    write("a")
    output.error = None
    write("b")

    assert output.getvalue() == "b"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_program_with_a_full_output_runs_to_its_end():
    program = "import sys; from ropewalk_console.output import write; write('a' * 9000); write('b'); sys.exit(3)"
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([sys.executable, "-c", program], check=False, stdout=full, stderr=subprocess.PIPE)

    assert b"Traceback" not in result.stderr
    assert result.returncode == 3


@pytest.mark.parametrize(("terminal", "printed"), [(True, "a\n\N{REPLACEMENT CHARACTER}[2Jb"), (False, "a\n\x1b[2Jb")])
def test_what_a_model_says_does_not_steer_the_terminal(monkeypatch, terminal, printed):
    output = Failing(None)
    output.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stdout", output)

    write("a\n\x1b[2Jb")

    assert output.getvalue() == printed


def test_a_program_whose_reader_is_gone_runs_to_its_end_in_silence():
    program = """
import sys
from ropewalk_console.output import write
sys.stdin.readline()
for _ in range(3):
    write("a" * 100)
sys.stderr.write("done")
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        process.stdin.write("go\n")
        process.stdin.close()
        said = process.stderr.read()
        status = process.wait()

    assert (said, status) == ("done", 0)
