"""ctrl-C and pipes, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

BOUND = 60
"""Seconds after which a process that should have ended is killed and the test fails."""

WATCHED = """
import threading, time
from ropewalk import Agent
from ropewalk_testing import ScriptedModel, turn, use

model = ScriptedModel([turn("So far", stall=True)])
agent = Agent(model=model)


def announce():
    model.stalled.wait()
    import sys
    sys.stderr.write("STALLED\\n")
    sys.stderr.flush()


threading.Thread(target=announce, daemon=True).start()


class Stuck:
    tool_name = "stuck"
    tool_spec = {"name": "stuck", "description": "Waits.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        import sys
        sys.stderr.write("STALLED\\n")
        sys.stderr.flush()
        time.sleep(3600)  # holds the event loop itself


stuck = Agent(model=ScriptedModel([use("stuck")]), tools=[Stuck()])
"""


@contextmanager
def started(folder, *arguments):
    (folder / "watched.py").write_text(WATCHED)
    process = subprocess.Popen(
        [sys.executable, "-m", "ropewalk_cli.main", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a process in the background of a shell inherits that ctrl-C is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process, wanted):
    """Reads standard error up to the wanted line; ends with the process."""
    return any(wanted in line for line in process.stderr)


def test_ctrl_c_cancels_a_silent_model_and_says_so_in_one_line(tmp_path):
    with started(tmp_path, "run", "--agent", "watched:agent", "hi") as process:
        assert said(process, "STALLED")

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)

    assert (out, process.returncode) == ("So far\n", 130)
    assert err.split("\n") == ["", "Cancelling (ctrl-C again ends the program at once)", ""]


def test_a_cancelled_run_has_a_json_result(tmp_path):
    with started(tmp_path, "run", "--json", "--agent", "watched:agent", "hi") as process:
        assert said(process, "STALLED")

        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=BOUND)

    assert '"stop_reason": "cancelled"' in out.splitlines()[-1]
    assert process.returncode == 130


def test_a_second_ctrl_c_ends_the_process_whatever_it_does(tmp_path):
    with started(tmp_path, "run", "--agent", "watched:stuck", "hi") as process:
        assert said(process, "STALLED")

        process.send_signal(signal.SIGINT)
        assert said(process, "Cancelling")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=BOUND)

    assert process.returncode == -signal.SIGINT


def test_a_reader_that_goes_away_ends_the_program_quietly(tmp_path):
    with started(tmp_path, "run", "--model", "testing:echo", "a long answer " * 1000) as process:
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=BOUND)

    assert (err, process.returncode) == ("", 1)
