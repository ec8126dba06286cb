"""The fixture `cassette`, in the pytest of another project."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-o", "asyncio_default_fixture_loop_scope=function")

TEST = """
import pytest
from ropewalk import Agent
from ropewalk_testing import ScriptedModel

@pytest.fixture(autouse=True)
def alone(no_plugins_env):
    pass

@pytest.mark.parametrize("word", ["a/b", "c"])
def test_it(cassette, word):
    model = cassette(lambda: ScriptedModel([f"said {word}"]))
    assert str(Agent(model=model)(PROMPT)) == f"said {word}\\n"
"""


@pytest.fixture
def run(pytester):
    def run(source, *arguments):
        pytester.makepyfile(test_there=source)
        return pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *OPTIONS, *arguments)

    return run


def test_a_missing_recording_says_what_to_do(run):
    result = run(TEST.replace("PROMPT", "'Go.'"))

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*MissingCassetteError: there is no cassette *--record-cassettes*"])


def test_a_run_is_recorded_and_played(run, pytester):
    source = TEST.replace("PROMPT", "'Go.'")
    run(source, "--record-cassettes").assert_outcomes(passed=2)
    folder = pytester.path / "cassettes" / "test_there"

    assert sorted(each.name for each in folder.iterdir()) == ["test_it-a-b.json", "test_it-c.json"]
    assert json.loads((folder / "test_it-c.json").read_text())["model"]["model_id"] == "scripted"
    run(source.replace("ScriptedModel([", "pytest.fail([")).assert_outcomes(passed=2)


def test_drift_fails_the_test(run):
    run(TEST.replace("PROMPT", "'Go.'"), "--record-cassettes").assert_outcomes(passed=2)
    result = run(TEST.replace("PROMPT", "'Come.'"))

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*messages?0?.content?0?.text differs from the recording*"])


def test_calls_that_are_no_longer_made_fail_the_test(run):
    source = TEST.replace("PROMPT", "'Go.'")
    run(source, "--record-cassettes").assert_outcomes(passed=2)
    result = run(source.split("    assert str")[0])

    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*it was recorded and not made*"])


def test_two_cassettes_of_a_test_need_names(run, pytester):
    source = """
from ropewalk_testing import ScriptedModel
import asyncio
from ropewalk.model import ModelRequest

def test_it(cassette):
    async def play(model):
        return [event async for event in model.stream(ModelRequest(messages=[]))]

    asyncio.run(play(cassette(lambda: ScriptedModel(["a"]))))
    asyncio.run(play(cassette(lambda: ScriptedModel(["b"]), name=NAME)))
"""
    run(source.replace("NAME", "''"), "--record-cassettes").assert_outcomes(failed=1)
    run(source.replace("NAME", "'judge'"), "--record-cassettes").assert_outcomes(passed=1)

    assert (pytester.path / "cassettes" / "test_there" / "test_it.judge.json").exists()
