"""Printing to outputs that are not up to it."""

from __future__ import annotations

import io
import subprocess
import sys

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
