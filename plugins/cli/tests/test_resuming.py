"""`ropewalk run --snapshot` and `ropewalk resume`, with models that play scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ropewalk_cli.claiming import claimed

AGENT = """
import pathlib
from ropewalk import Agent, current_run
from ropewalk_testing import ScriptedModel, use

LOG = pathlib.Path(__file__).with_name("log.txt")


def done(call, text):
    with LOG.open("a") as log:
        log.write(text + chr(10))

    return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


class Step:
    tool_name = "step"
    tool_spec = {"name": "step", "description": "Steps.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        return done(call, f"step {call.tool_use['input']['n']}")


class Ask:
    tool_name = "ask"
    tool_spec = {"name": "ask", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        return done(call, f"ask {call.interrupt(call.tool_use['input']['name'], {'why': 'to be sure'})!r}")


def said(messages):
    return sum(message["role"] == "assistant" for message in messages)


def follow(*script):  # a model that goes on where the conversation is, in whatever process
    return ScriptedModel(lambda request: script[said(request.messages)])


STEP = use("step", {"n": 1}, id="A")
ASKED = [use("ask", {"name": "one"}, id="A"), use("ask", {"name": "two"}, id="B"), use("step", {"n": 1}, id="C")]


def steps(*tools):
    return Agent(model=follow(STEP, use("step", {"n": 2}, id="B"), "Done."), tools=[Step()])


def asks():
    return Agent(model=follow(ASKED, "Done."), tools=[Ask(), Step()])


def fails():
    return Agent(model=follow(STEP, ValueError("no more"), "Done."), tools=[Step()])


class Stop(Step):
    async def invoke(self, call):
        current_run().agent.cancel()
        return await super().invoke(call)


def stops():
    return Agent(model=follow(STEP, "Done."), tools=[Stop()])


def fewer():
    return Agent(model=follow(STEP, "Done."))
"""
TOOLS = '''
from ropewalk import tool


@tool
def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number
'''


@pytest.fixture
def work(shell):
    """A folder with agents."""
    shell.write("some.py", AGENT)
    return shell


def log(work):
    """What the tools have noted."""
    file = work.folder / "log.txt"
    return file.read_text().splitlines() if file.exists() else []


def saved(work):
    return work.folder / "run.json"


def resume_of(work):
    return json.loads(saved(work).read_text())["resume"]


def started(work, agent="steps", *options):
    result = work.run("run", "--agent", f"some.py:{agent}", *options, "--snapshot", "run.json", "Go.")
    assert result.exit_code == 4, result.stderr
    return result


# -- checkpoints ---------------------------------------------------------------------------------------------------


def test_a_run_pauses_at_each_checkpoint_and_goes_on(work):
    result = started(work, "steps", "--checkpointing")
    assert result.stderr.splitlines()[-1] == (
        "the run waits at after_model 0 in run.json: ropewalk resume run.json goes on with it"
    )

    waits = []
    for _ in range(3):
        result = work.run("resume", "run.json")
        assert result.exit_code == 4, result.stderr
        waits.append(resume_of(work)["checkpointResume"]["checkpoint"])

    assert [(each["position"], each["cycle_index"]) for each in waits] == [
        ("after_tools", 0),
        ("after_model", 1),
        ("after_tools", 1),
    ]
    result = work.run("resume", "run.json")
    assert (result.stdout, result.exit_code) == ("Done.\n", 0)
    assert result.stderr.splitlines()[-1] == "the run has ended; run.json is removed"
    assert not saved(work).exists()
    assert log(work) == ["step 1", "step 2"]


def test_checkpoints_need_a_file(work):
    result = work.run("run", "--agent", "some.py:steps", "--checkpointing", "Go.")
    assert result.exit_code == 2
    assert "give --snapshot FILE too" in result.stderr


def test_a_run_that_does_not_pause_writes_nothing(work):
    result = work.run("run", "--agent", "some.py:steps", "--snapshot", "run.json", "Go.")
    assert (result.stdout, result.exit_code) == ("Done.\n", 0)
    assert not saved(work).exists()


def test_another_process_and_folder_go_on(work):
    started(work, "steps", "--checkpointing")
    elsewhere = work.folder / "elsewhere"
    elsewhere.mkdir()
    codes = [
        subprocess.run(
            [sys.executable, "-m", "ropewalk_cli.main", "resume", str(saved(work))],
            cwd=elsewhere,
            env={**os.environ, **work.environment},
            check=False,
            capture_output=True,
            timeout=120,
        ).returncode
        for _ in range(4)
    ]
    assert codes == [4, 4, 4, 0]
    assert log(work) == ["step 1", "step 2"]


def test_a_model_and_tools_given_by_name_are_those_of_the_resume_too(work):
    work.write("tools.py", TOOLS)
    use = {"toolUse": {"toolUseId": "A", "name": "double", "input": {"number": 21}}}
    work.environment["ROPEWALK_MODEL"] = work.script(use)
    result = work.run("run", "-t", "tools.py", "--checkpointing", "--snapshot", "run.json", "Go.")
    assert result.exit_code == 4, result.stderr

    work.environment["ROPEWALK_MODEL"] = "testing:nope"
    result = work.run("resume", "run.json")
    assert (result.exit_code, "success: 42" in result.stderr) == (4, True)

    result = work.run("resume", "run.json", "--model", "testing:echo")
    assert (result.exit_code, saved(work).exists()) == (0, False)


def test_json_has_the_checkpoint(work):
    result = started(work, "steps", "--checkpointing", "--json")
    told = json.loads(result.stdout.splitlines()[-1])["result"]
    assert told["stop_reason"] == "checkpoint"
    assert told["checkpoint"] == {"position": "after_model", "cycle_index": 0, "schema_version": "1.0"}
    assert told["interrupts"] == []


# -- questions -----------------------------------------------------------------------------------------------------


def test_questions_are_told_and_answered(work):
    result = started(work, "asks")
    told = [line for line in result.stderr.splitlines() if line.startswith("? ")]
    assert [line.partition(": ")[2] for line in told] == ['one: {"why": "to be sure"}', 'two: {"why": "to be sure"}']

    result = work.run("resume", "run.json", "--answer", "two=false")
    assert result.exit_code == 4
    [open_one] = resume_of(work)["interrupts"]
    result = work.run("resume", "run.json", "--answer", f'{open_one["id"]}="yes"')

    assert (result.stdout, result.exit_code, saved(work).exists()) == ("Done.\n", 0, False)
    assert sorted(log(work)) == ["ask 'yes'", "ask False", "step 1"]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([], "waits for answers: give --answer ID=JSON for"),
        (["one"], "give ID=JSON"),
        (["one=yes"], "'yes' is no JSON: a text needs quotes"),
        (["one=NaN"], "'NaN' is no JSON"),
        (["three=1"], "there is no such question"),
        (["one=1", "one=2"], "answers a question twice"),
    ],
)
def test_answers_that_do_not_fit_are_wrong_usage_and_change_nothing(work, answers, problem):
    started(work, "asks")
    before = saved(work).read_bytes()
    result = work.run("resume", "run.json", *(part for each in answers for part in ("--answer", each)))

    assert result.exit_code == 2
    assert problem in result.stderr
    assert saved(work).read_bytes() == before


def test_a_checkpoint_takes_no_answer(work):
    started(work, "steps", "--checkpointing")
    result = work.run("resume", "run.json", "--answer", "one=1")
    assert (result.exit_code, "waits for no answer" in result.stderr) == (2, True)


def test_whoever_sits_at_the_terminal_is_asked(work, monkeypatch):
    started(work, "asks")
    monkeypatch.setattr("ropewalk_cli.questions.at_a_terminal", lambda: True)
    result = work.run("resume", "run.json", "--answer", "one=null", stdin="go ahead\n")

    assert result.exit_code == 0, result.stderr
    assert 'two: {"why": "to be sure"}' in result.stderr
    assert sorted(log(work)) == ["ask 'go ahead'", "ask None", "step 1"]


def test_the_whole_question_is_shown_and_cannot_steer_the_terminal(work, monkeypatch):
    work.write(
        "some.py", AGENT.replace("{'why': 'to be sure'}", "'one line' + chr(10) + 'rm -rf ' + 'x' * 300 + chr(27)")
    )
    result = started(work, "asks")
    whole = "one: one line\nrm -rf " + "x" * 300 + "\N{REPLACEMENT CHARACTER}"
    assert whole in result.stderr

    monkeypatch.setattr("ropewalk_cli.questions.at_a_terminal", lambda: True)
    assert whole in work.run("resume", "run.json", stdin="no\nno\n").stderr


def test_the_end_of_the_input_is_no_answer(work, monkeypatch):
    started(work, "asks")
    before = saved(work).read_bytes()
    monkeypatch.setattr("ropewalk_cli.questions.at_a_terminal", lambda: True)
    assert work.run("resume", "run.json", stdin="").exit_code == 1
    assert saved(work).read_bytes() == before


def test_a_question_without_a_file_ends_the_run_and_says_what_would_keep_it(work):
    result = work.run("run", "--agent", "some.py:asks", "Go.")
    assert result.exit_code == 3
    assert "stopped early: interrupt; --snapshot FILE or --session ID keeps the run" in result.stderr


# -- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', "null", '{"snapshot": {}, "resume": null}'])
def test_a_file_that_is_no_paused_run_is_one_clear_error(work, text):
    saved(work).write_text(text)
    result = work.run("resume", "run.json")

    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: SavedRunError: run.json ")
    assert saved(work).read_text() == text


def test_a_history_that_was_edited_is_refused_and_nothing_runs(work):
    started(work, "steps", "--checkpointing")
    text = saved(work).read_text().replace('"text": "Go."', '"text": "Stop."')
    saved(work).write_text(text)
    result = work.run("resume", "run.json")

    assert result.exit_code == 1
    assert "CheckpointException: the run cannot go on: the history is not the one" in result.stderr
    assert saved(work).read_text() == text
    assert log(work) == []


def test_a_pause_that_was_edited_is_refused(work):
    started(work, "steps", "--checkpointing")
    saved(work).write_text(saved(work).read_text().replace('"position": "tools"', '"position": "cycle"'))
    result = work.run("resume", "run.json")
    assert result.exit_code == 1
    assert "was changed after it had been saved" in result.stderr


def test_a_snapshot_that_is_broken_is_one_clear_error(work):
    started(work, "steps", "--checkpointing")
    plain = json.loads(saved(work).read_text())
    plain["snapshot"]["data"]["messages"] = 3
    saved(work).write_text(json.dumps(plain))
    result = work.run("resume", "run.json")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: SavedRunError: run.json holds ")


def test_a_tool_that_is_gone_is_named_and_the_run_still_waits(work):
    started(work, "steps", "--checkpointing")
    before = saved(work).read_bytes()
    result = work.run("resume", "run.json", "--agent", "some.py:fewer")

    assert result.exit_code == 1
    assert "the agent has no tool 'step' any more" in result.stderr
    assert saved(work).read_bytes() == before
    assert work.run("resume", "run.json").exit_code == 4


def test_the_payload_of_an_earlier_pause_is_refused(work):
    started(work, "steps", "--checkpointing")
    work.run("resume", "run.json")
    old = json.loads(saved(work).read_text())
    old["resume"]["checkpointResume"]["checkpoint"]["position"] = "after_model"
    saved(work).write_text(json.dumps(old))
    result = work.run("resume", "run.json")

    assert result.exit_code == 1
    assert "the checkpoint is that after_model of cycle 0, and the run waits after_tools of cycle 0" in result.stderr
    assert log(work) == ["step 1"]


def test_a_run_that_breaks_off_leaves_what_it_has_done(work):
    started(work, "fails", "--checkpointing")
    assert work.run("resume", "run.json").exit_code == 4
    result = work.run("resume", "run.json")
    assert result.exit_code == 1
    assert "ValueError: no more" in result.stderr
    assert "broken off; run.json holds the conversation up to there" in result.stderr
    assert resume_of(work) is None

    work.write("some.py", AGENT.replace('ValueError("no more")', '"Well."'))
    sys.modules.pop("some", None)
    result = work.run("resume", "run.json")
    assert (result.stdout, result.exit_code, saved(work).exists()) == ("Well.\n", 0, False)
    assert log(work) == ["step 1"]


def test_a_run_that_is_cancelled_does_nothing_twice(work):
    started(work, "stops", "--checkpointing")
    result = work.run("resume", "run.json")
    assert result.exit_code == 130
    assert "cancelled; run.json holds the conversation up to there" in result.stderr
    assert resume_of(work) is None

    result = work.run("resume", "run.json")
    assert (result.stdout, result.exit_code, saved(work).exists()) == ("Done.\n", 0, False)
    assert log(work) == ["step 1"]


def test_one_process_at_a_time_goes_on(work):
    started(work, "steps", "--checkpointing")
    before = saved(work).read_bytes()
    with claimed(saved(work)):
        result = work.run("resume", "run.json")

    assert result.exit_code == 1
    assert "another process goes on with run.json" in result.stderr
    assert (saved(work).read_bytes(), log(work)) == (before, [])
    assert work.run("resume", "run.json").exit_code == 4


def test_run_does_not_write_over_a_file(work):
    saved(work).write_text("mine")
    result = work.run("run", "--agent", "some.py:steps", "--checkpointing", "--snapshot", "run.json", "Go.")
    assert result.exit_code == 1
    assert "run.json exists" in result.stderr
    assert saved(work).read_text() == "mine"


def test_tools_that_are_asked_about_stay_so(work):
    started(work, "steps", "--checkpointing", "--approve", "step")
    result = work.run("resume", "run.json", stdin="n\n")

    assert result.exit_code == 4, result.stderr
    assert "CONFIRMATION_FAILED" in result.stderr
    assert log(work) == []
