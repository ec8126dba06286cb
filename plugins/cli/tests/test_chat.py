"""`ropewalk chat`."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

import pytest

from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions import LogKey
from ropewalk_session_file import FileLogStore

BOUND = 60

AGENTS = """
import threading
from ropewalk import Agent
from ropewalk_testing import ScriptedModel, turn, use


class Ask:
    tool_name = "ask"
    tool_spec = {"name": "ask", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        text = f"heard {call.interrupt('sure', 'Really?')!r}"
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def asks():
    return Agent(model=ScriptedModel([use("ask", {}, id="A"), "Done."]), tools=[Ask()])


def fails():
    return Agent(model=ScriptedModel([ValueError("no more"), "Back again."]), retry_strategy=None)


def stalls():
    model = ScriptedModel([turn("So far", stall=True), "Still here."])

    def announce():
        import sys
        model.stalled.wait()
        sys.stderr.write("STALLED")
        sys.stderr.flush()

    threading.Thread(target=announce, daemon=True).start()
    return Agent(model=model)
"""

TOOLS = '''
from ropewalk import tool


@tool
def now() -> str:
    """The time."""
    return "noon"
'''


@pytest.fixture
def work(shell):
    """A folder with agents and a store."""
    shell.write("some.py", AGENTS)
    shell.environment["ROPEWALK_STORE"] = "kept"
    return shell


def texts(work, session):
    found = FileLogStore(work.folder / "kept").read(LogKey(session, "default"))
    return [block.get("text") for m in fold(LogState(), found.records).messages for block in m["content"]]


# -- piped ---------------------------------------------------------------------------------------------------------


def test_each_line_is_a_turn_of_one_conversation(work):
    work.write("script.json", '["One.", "Two."]')
    result = work.run("chat", "-m", "testing:script.json", stdin="first\n\n  \nsecond")

    assert (result.stdout, result.stderr, result.exit_code) == ("One.\nTwo.\n", "", 0)


def test_a_session_is_gone_on_with(work):
    work.run("chat", "-m", "testing:echo", "--session", "ada", stdin="one\n")
    result = work.run("chat", "-m", "testing:echo", "--session", "ada", stdin="two\n")

    assert "session 'ada': 2 messages so far" in result.stderr
    assert texts(work, "ada") == ["one", "one", "two", "two"]


def test_what_the_agent_asks_is_answered_in_the_conversation(work):
    result = work.run("chat", "--agent", "some.py:asks", stdin="Go.\nyes\n")

    assert (result.stdout, result.exit_code) == ("Done.\n", 0)
    assert "sure: Really? " in result.stderr
    assert "success: heard 'yes'" in result.stderr


def test_a_question_that_is_left_open_waits_in_the_session(work):
    result = work.run("chat", "--agent", "some.py:asks", "--session", "ada", stdin="Go.\n")
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-2:] == [
        "sure: Really? ",
        "the run waits in session 'ada': ropewalk resume ada --agent some.py:asks goes on with it",
    ]

    work.write("script.json", '["Done."]')
    result = work.run("chat", "--agent", "some.py:asks", "--session", "ada", stdin="true\n")
    assert "success: heard True" in result.stderr


def test_an_error_ends_a_piped_conversation(work):
    result = work.run("chat", "--agent", "some.py:fails", stdin="one\ntwo\n")

    assert result.exit_code == 1
    assert "ValueError: no more" in result.stderr
    assert result.stdout == ""


def test_tools_can_be_asked_about(work):
    work.write("tools.py", TOOLS)
    work.write("script.json", '[{"toolUse": {"toolUseId": "A", "name": "now", "input": {}}}, "Done."]')
    result = work.run("chat", "-m", "testing:script.json", "-t", "tools.py", "--approve", "now", stdin="Go.\ny\n")

    assert "Run the tool now with {}? [y/n]" in result.stderr
    assert "success: noon" in result.stderr


# -- at a terminal -------------------------------------------------------------------------------------------------


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, folder, *arguments):
        import pty

        self._main, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ropewalk_cli.main", "chat", *arguments],
            cwd=folder,
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "dumb"},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        os.close(other)
        self._seen = ""

    def until(self, wanted):
        """Reads up to the wanted text."""
        self._read_to(wanted, BOUND)
        before, found, self._seen = self._seen.partition(wanted)
        assert found, f"{wanted!r} did not come: {before!r}"
        return before

    def interrupt_until(self, wanted):
        """Sends ctrl-C, again when nothing comes: `input` misses one that arrives just before it waits for a key."""
        for _ in range(BOUND):
            self.interrupt()
            if self._read_to(wanted, 2):
                break

        self.until(wanted)

    def _read_to(self, wanted, seconds):
        end = time.monotonic() + seconds
        while wanted not in self._seen and time.monotonic() < end:
            if select.select([self._main], [], [], 1)[0]:
                try:
                    self._seen += os.read(self._main, 4096).decode()
                except OSError:  # the other end is closed
                    break

        return wanted in self._seen

    def type(self, text):
        os.write(self._main, text.encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def ended(self):
        self.type("\x04")
        return self.process.wait(timeout=BOUND)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._main)


@pytest.fixture
def terminal(work):
    """Starts the program at a terminal."""
    if os.name == "nt":
        pytest.skip("no terminals like these")

    opened = []

    def start(*arguments):
        opened.append(Terminal(work.folder, *arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_ctrl_c_cancels_the_turn_and_ctrl_d_ends_the_conversation(terminal):
    chat = terminal("--agent", "some.py:stalls")
    chat.until("> ")
    chat.type("hi\n")
    chat.until("STALLED")
    chat.interrupt()
    chat.until("Cancelling")
    chat.until("> ")
    chat.type("again\n")
    chat.until("Still here.")
    chat.until("> ")

    assert chat.ended() == 0


def test_ctrl_c_at_the_prompt_gives_up_the_line_only(terminal):
    chat = terminal("-m", "testing:echo")
    chat.until("> ")
    chat.type("half a li")
    chat.until("half a li")
    chat.interrupt_until("> ")
    chat.type("whole\n")
    chat.until("whole")
    chat.until("whole")
    chat.until("> ")

    assert chat.ended() == 0


def test_an_error_does_not_end_a_conversation_at_a_terminal(terminal):
    chat = terminal("--agent", "some.py:fails")
    chat.until("> ")
    chat.type("one\n")
    chat.until("ValueError: no more")
    chat.until("> ")
    chat.type("two\n")
    chat.until("Back again.")
    chat.until("> ")

    assert chat.ended() == 0


def test_a_wrong_model_is_told_before_anything_is_typed(shell):
    result = shell.run("chat", "-m", "testing:nope")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: UnknownModelError: model 'testing:nope'")
