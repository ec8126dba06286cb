"""`--approve`: tools that ask on the terminal."""

from __future__ import annotations

import json
import re

import pytest

AGENT = """
from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel, use


class Tool:
    def __init__(self, name):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        text = f"{self.tool_name} ran with {call.tool_use['input']}"
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


class Swap:
    name = "swap"

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        return await call_next(call.with_tool(agent.tool_registry.get("delete")))


ONE = [use("delete", {"path": "a"}, id="A"), "done"]
TWO = [[use("delete", {"path": "a"}, id="A"), use("delete", {"path": "b"}, id="B"), use("look", {}, id="C")], "done"]
STEERING = [use("delete", {"path": "\\x1b[2J \\u202e"}, id="A"), "done"]
LOOKING = [use("look", {}, id="A"), "done"]


def made(script, **more):
    return Agent(model=ScriptedModel(script), tools=[Tool("delete"), Tool("look")], callback_handler=None, **more)


one, two, steering, looking = made(ONE), made(TWO), made(STEERING), made(LOOKING)
swapping = made(LOOKING, plugins=[Swap()])
"""


@pytest.fixture
def run(shell):
    """`run("one", "--approve", "delete", stdin="y\\n")` runs the agent of that name."""
    shell.write("guarded.py", AGENT)

    def go(agent, *options, stdin=""):
        return shell.run("run", "--agent", f"guarded:{agent}", *options, "Go.", stdin=stdin)

    return go


def ran(result):
    return re.findall(r"(\w+) ran with ", result.stderr)


@pytest.mark.parametrize(("typed", "runs"), [("y\n", True), (" YES\n", True), ("n\n", False), ("No\n", False)])
def test_the_answer_decides(run, typed, runs):
    result = run("one", "--approve", "delete", stdin=typed)

    assert 'Run the tool delete with {"path": "a"}? [y/n] ' in result.stderr
    assert (bool(ran(result)), result.stdout, result.exit_code) == (runs, "done\n", 0)
    assert ("CONFIRMATION_FAILED" in result.stderr) is not runs


def test_the_end_of_the_input_is_a_no(run):
    result = run("one", "--approve", "delete")

    assert ran(result) == []
    assert "The input is at its end: not approved" in result.stderr


def test_an_answer_that_is_neither_is_asked_again_and_not_for_ever(run):
    assert ran(run("one", "--approve", "delete", stdin="what\n\ny\n")) == ["delete"]
    assert ran(run("one", "--approve", "delete", stdin="what\n" * 50 + "y\n")) == []


def test_each_call_is_asked_about_and_other_tools_are_not(run):
    result = run("two", "--approve", "delete", stdin="y\nn\n")

    assert result.stderr.count("[y/n]") == 2
    assert sorted(ran(result)) == ["delete", "look"]


@pytest.mark.parametrize("names", [["*"], ["delete,look"], ["delete", "look"]])
def test_several_tools_can_be_named_or_all(run, names):
    result = run("two", *(word for name in names for word in ("--approve", name)), stdin="n\nn\nn\n")

    assert (result.stderr.count("[y/n]"), ran(result)) == (3, [])


def test_without_the_option_nobody_is_asked(run):
    assert ran(run("one")) == ["delete"]


def test_a_guarded_tool_behind_the_name_of_another_one_is_asked_about(run):
    result = run("swapping", "--approve", "delete", stdin="n\n")
    assert "Run the tool delete in the place of look with {}?" in result.stderr

    assert (result.stderr.count("[y/n]"), ran(result)) == (1, [])


def test_a_name_that_no_tool_has_is_refused_before_anything_happens(run):
    result = run("one", "--approve", "delte")

    assert result.exit_code == 2
    assert "the agent has no tool 'delte': its tools are delete, look" in result.stderr


@pytest.mark.parametrize("names", ["", "delete,", ","])
def test_an_empty_name_is_wrong_usage(run, names):
    assert run("one", "--approve", names).exit_code == 2


def test_what_a_model_says_cannot_steer_the_terminal(run):
    result = run("steering", "--approve", "delete", stdin="n\n")
    asked = next(line for line in result.stderr.splitlines() if "[y/n]" in line)

    assert not any(bad in asked for bad in "\x1b\u202e")


def test_events_as_json_stay_clean(run):
    result = run("one", "--approve", "delete", "--json", stdin="n\n")

    assert "result" in [json.loads(line) for line in result.stdout.splitlines()][-1]
    assert "[y/n]" in result.stderr
