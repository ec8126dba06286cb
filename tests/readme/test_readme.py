"""The examples of README.md run as they stand there."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ropewalk import Agent
from ropewalk_testing import ScriptedModel, use

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)^```$")


@pytest.fixture
def blocks():
    """The code blocks in order, as pairs of language and text."""
    return BLOCK.findall((ROOT / "README.md").read_text())


def example(blocks, needle):
    """Runs the Python example that contains a text, and gives the names it defines."""
    (code,) = [text for language, text in blocks if language == "python" and needle in text]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_every_block_is_covered_by_a_test_of_this_file(blocks):
    assert [language for language, _ in blocks] == ["bash", "python", "python", "toml"]


def test_the_commands_are_commands_of_dev_py(blocks):
    commands = blocks[0][1].splitlines()
    assert commands == ["python3 dev.py demo", "python3 dev.py test"]
    for command in commands:
        arguments = [sys.executable, *command.split()[1:2], "--help"]
        usage = subprocess.run(arguments, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert command.removeprefix("python3 ") in usage


@pytest.mark.model
def test_the_agent_calls_its_tool_and_answers(blocks, capsys):
    names = example(blocks, "count_letter")
    assert "3" in str(names["result"])
    messages = names["agent"].messages
    assert any("toolUse" in block for message in messages for block in message["content"])
    assert str(names["result"]).strip() in capsys.readouterr().out


def test_the_plugin_logs_how_long_a_tool_took(blocks, caplog):
    stopwatch = example(blocks, "StopwatchPlugin")["StopwatchPlugin"]
    count_letter = example_tool(blocks)
    model = ScriptedModel([use("count_letter", {"word": "rare", "letter": "r"}), "twice"])
    agent = Agent(model=model, tools=[count_letter], plugins=[stopwatch()], callback_handler=None)
    with caplog.at_level(logging.INFO, logger="ropewalk.stopwatch"):
        agent("How often?")

    assert re.fullmatch(r"count_letter took \d+\.\d{3} s", caplog.messages[0])


def example_tool(blocks):
    """The tool of the first example, without its agent."""
    (code,) = [text for _, text in blocks if "count_letter" in text]
    names = {}
    exec(compile(code.split("\nagent = ")[0], "README.md", "exec"), names)
    return names["count_letter"]


def test_the_entry_point_names_the_plugin_of_the_example(blocks):
    (text,) = [text for language, text in blocks if language == "toml"]
    entries = tomllib.loads(text)["project"]["entry-points"]["ropewalk.plugins"]
    assert entries == {"stopwatch": "ropewalk_stopwatch:StopwatchPlugin"}
    assert example(blocks, "StopwatchPlugin")["StopwatchPlugin"].name in entries
