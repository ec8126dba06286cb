"""`--session` of `ropewalk run`, and `ropewalk resume SESSION`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions import LogKey
from ropewalk_cli.resuming import resume
from ropewalk_cli.saved import AgentOptions
from ropewalk_cli.sessions import resume_command
from ropewalk_session_file import FileLogStore

AGENTS = """
import os, pathlib, signal
from ropewalk import Agent
from ropewalk_session_file import FileSessionManager
from ropewalk_testing import ScriptedModel, use

LOG = pathlib.Path(__file__).with_name("log.txt")
SCHEMA = {"json": {"type": "object"}}


class Step:
    tool_name = "step"
    tool_spec = {"name": "step", "description": "Steps.", "inputSchema": SCHEMA}

    async def invoke(self, call):
        with LOG.open("a") as log:
            log.write("step\\n")

        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "stepped"}]}


class Die(Step):
    tool_name = "die"
    tool_spec = {"name": "die", "description": "Dies.", "inputSchema": SCHEMA}

    async def invoke(self, call):
        os.kill(os.getpid(), signal.SIGKILL)


class Ask(Step):
    tool_name = "ask"
    tool_spec = {"name": "ask", "description": "Asks.", "inputSchema": SCHEMA}

    async def invoke(self, call):
        text = f"heard {call.interrupt('sure', 'Really?')}"
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def follow(*script):
    return ScriptedModel(lambda request: script[sum(m["role"] == "assistant" for m in request.messages)])


def dies():
    return Agent(model=follow(use("step", {}, id="A"), use("die", {}, id="B"), "Done."), tools=[Step(), Die()])


def asks():
    return Agent(model=follow(use("ask", {}, id="A"), "Done."), tools=[Ask()])


def steps():
    return Agent(model=follow(use("step", {}, id="A"), "Done."), tools=[Step()])


def own():
    return Agent(model=follow("Hi."), session_manager=FileSessionManager("own", storage_dir="own"))
"""


@pytest.fixture
def work(shell):
    """A folder with agents and a store."""
    shell.write("some.py", AGENTS)
    shell.environment["ROPEWALK_STORE"] = "kept"
    return shell


def state_of(work, session, folder="kept"):
    found = FileLogStore(work.folder / folder).read(LogKey(session, "default"))
    return fold(LogState(), found.records)


def texts(work, session, folder="kept"):
    return [block.get("text") for m in state_of(work, session, folder).messages for block in m["content"]]


# -- run -----------------------------------------------------------------------------------------------------------


def test_a_conversation_goes_on_from_run_to_run(work):
    first = work.run("run", "-m", "testing:echo", "--session", "ada", "One.")
    second = work.run("run", "-m", "testing:echo", "--session", "ada", "Two.")

    assert (first.stdout, second.stdout, second.exit_code) == ("One.\n", "Two.\n", 0)
    assert texts(work, "ada") == ["One.", "One.", "Two.", "Two."]


def test_the_store_may_be_given(work):
    assert work.run("run", "-m", "testing:echo", "--session", "ada", "--store", "other", "Hi.").exit_code == 0

    assert texts(work, "ada", "other") == ["Hi.", "Hi."]


def test_an_agent_of_ones_own_is_kept_in_the_session_too(work):
    work.run("run", "--agent", "some.py:steps", "--session", "ada", "Go.")
    result = work.run("run", "-m", "testing:echo", "--session", "ada", "More.")

    assert (result.exit_code, texts(work, "ada")[-2:]) == (0, ["More.", "More."])


def test_an_agent_with_a_session_of_its_own_is_wrong_usage(work):
    result = work.run("run", "--agent", "some.py:own", "--session", "ada", "Go.")

    assert result.exit_code == 2
    assert "the agent has a session of its own (FileSessionManager('own'" in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--session", "a", "--snapshot", "f.json"), "leave out --snapshot"),
        (("--store", "kept"), "give --session ID too"),
        (("--checkpointing",), "or --session ID"),
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(work, options, problem):
    result = work.run("run", "-m", "testing:echo", *options, "Hi.")

    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())


def test_a_blank_session_is_one_clear_error(work):
    result = work.run("run", "-m", "testing:echo", "--session", " ", "Hi.")

    assert result.exit_code == 2
    assert "'--session': give a text that is not blank" in result.stderr


@pytest.mark.parametrize(
    ("options", "store", "words"),
    [
        (AgentOptions(), None, []),
        (AgentOptions(), "my folder", ["--store", "my folder"]),
        (AgentOptions(), "postgresql://me:secret@host/db", ["--store", "STORE"]),
        (
            AgentOptions("testing:echo", None, ("a.py", "m:f"), ("-window",), "Be brief.", ("a", "b"), True),
            None,
            ["--model", "testing:echo", "--tools", "a.py", "--tools", "m:f", "--plugin=-window",
             "--system", "Be brief.", "--approve", "a,b", "--checkpointing"],
        ),
    ],
)  # fmt: skip
def test_how_a_session_is_gone_on_with_is_told_with_all_that_makes_the_agent(options, store, words):
    told = shlex.split(resume_command("my run", options, store))
    assert told == ["ropewalk", "resume", "my run", *words]

    parsed = resume.make_context("resume", told[2:])
    assert parsed.params["target"] == "my run"
    assert parsed.params["plugins"] == options.plugins
    assert parsed.params["approve"] == frozenset(options.approve)


# -- resume --------------------------------------------------------------------------------------------------------


def test_a_run_that_waits_for_an_answer_is_gone_on_with(work):
    result = work.run("run", "--agent", "some.py:asks", "--session", "my run", "Go.")
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1] == (
        "the run waits for answers in session 'my run': ropewalk resume 'my run' --agent some.py:asks --answer ID=JSON "
        "goes on with it"
    )

    result = work.run("run", "--agent", "some.py:asks", "--session", "my run", "Something else.")
    assert result.exit_code == 2
    assert (
        "waits for answers and takes no prompt: `ropewalk resume 'my run' --agent some.py:asks` asks" in result.stderr
    )

    result = work.run("resume", "my run", "--agent", "some.py:asks")
    assert result.exit_code == 2
    assert "session 'my run' waits for answers: give --answer ID=JSON for" in result.stderr

    result = work.run("resume", "my run", "--agent", "some.py:asks", "--answer", 'sure="yes"')
    assert (result.stdout, result.exit_code) == ("Done.\n", 0)
    assert "success: heard yes" in result.stderr


def test_a_checkpoint_in_a_session_is_gone_on_with(work):
    result = work.run("run", "--agent", "some.py:steps", "--checkpointing", "--session", "ada", "Go.")
    assert result.exit_code == 4, result.stderr

    results = [work.run("resume", "ada", "--agent", "some.py:steps") for _ in range(2)]
    assert [each.exit_code for each in results] == [4, 0], [each.stderr for each in results]
    assert (work.folder / "log.txt").read_text() == "step\n"


def test_tools_that_were_asked_about_are_not_run_unasked(work):
    work.run("run", "--agent", "some.py:steps", "--checkpointing", "--approve", "step", "--session", "ada", "Go.")
    result = work.run("resume", "ada", "--agent", "some.py:steps")
    assert result.exit_code == 2
    assert "give --approve TOOLS again" in result.stderr

    result = work.run("resume", "ada", "--agent", "some.py:steps", "--approve", "step", stdin="y\n")
    assert (result.exit_code, (work.folder / "log.txt").read_text()) == (4, "step\n")


def test_a_run_whose_process_was_killed_is_gone_on_with(work):
    command = [sys.executable, "-m", "ropewalk_cli.main"]
    child = subprocess.run(
        [*command, "run", "--agent", "some.py:dies", "--session", "ada", "Go."],
        cwd=work.folder,
        env={**os.environ, **work.environment},
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert child.returncode == -9

    result = work.run("resume", "ada", "--agent", "some.py:dies")
    assert (result.stdout, result.exit_code) == ("Done.\n", 0)
    assert (work.folder / "log.txt").read_text() == "step\n"  # not twice
    uncertain = state_of(work, "ada").messages[-2]["content"][0]["toolResult"]
    assert uncertain["status"] == "error"


def test_a_session_that_waits_for_nothing_says_how_to_go_on(work):
    work.run("run", "-m", "testing:echo", "--session", "ada", "Hi.")
    result = work.run("resume", "ada", "-m", "testing:echo")

    assert result.exit_code == 1
    assert "session 'ada' waits for nothing: ropewalk run --session ada PROMPT goes on with it" in result.stderr


def test_what_is_neither_file_nor_session_is_one_clear_error(work):
    result = work.run("resume", "nothing")
    assert result.exit_code == 1
    assert "there is no file nothing, and no session of that name" in result.stderr

    result = work.run("resume", "nothing", "--store", "kept")
    assert "there is no session 'nothing'" in result.stderr


def test_a_file_comes_before_a_session_of_its_name(work):
    work.run("run", "-m", "testing:echo", "--session", "ada", "Hi.")
    work.write("ada", "{")

    assert "ada is no JSON" in work.run("resume", "ada").stderr
    assert "waits for nothing" in work.run("resume", "ada", "-m", "testing:echo", "--store", "kept").stderr


def test_json_has_the_result_of_a_resume(work):
    work.run("run", "--agent", "some.py:asks", "--session", "ada", "Go.")
    result = work.run("resume", "ada", "--agent", "some.py:asks", "--answer", "sure=1", "--json")

    assert json.loads(result.stdout.splitlines()[-1])["result"]["stop_reason"] == "end_turn"
