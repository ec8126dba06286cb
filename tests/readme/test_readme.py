"""The examples of README.md run as they stand there."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from ropewalk import Agent, ModelThrottledException
from ropewalk.kits.hooks.parameters import PARAMETERS
from ropewalk_cli.main import program
from ropewalk_testing import ScriptedModel, turn, use

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)^```$")


@pytest.fixture
def blocks():
    """The code blocks in order, as pairs of language and text."""
    return BLOCK.findall((ROOT / "README.md").read_text())


@pytest.fixture
def readme():
    return (ROOT / "README.md").read_text()


def example(blocks, needle, model=None, **names):
    """Runs the Python example that contains a text, with another model, and gives the names that it defines."""
    (code,) = [text for language, text in blocks if language == "python" and needle in text]
    if model is not None:
        code, count = re.subn(r'\bmodel="[^"]+"', "model=scripted", code)
        assert count == 1
        names["scripted"] = model

    exec(compile(code, "README.md", "exec"), names)
    return names


def test_every_block_is_covered_by_a_test_of_this_file(blocks):
    assert [language for language, _ in blocks] == ["bash", *["python"] * 7, "bash", "python", "toml"]


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


async def test_a_server_gets_the_answer_in_pieces(blocks):
    agent = Agent(model=ScriptedModel([turn("Three times.", deltas=4)]), callback_handler=None)
    answer = example(blocks, "stream_async", agent=agent)["answer"]
    pieces = [piece async for piece in answer("How often?") if piece]

    assert (len(pieces), "".join(pieces)) == (4, "Three times.")


@pytest.mark.usefixtures("ropewalk_env")
def test_the_conversation_is_there_in_the_second_process(blocks, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    example(blocks, "FileSessionManager", ScriptedModel(["Hello, Ada."]))
    model = ScriptedModel(["Ada."])
    names = example(blocks, "FileSessionManager", model)

    assert [message["content"][0]["text"] for message in names["agent"].messages] == [
        "My name is Ada.",
        "Hello, Ada.",
        "What is my name?",
        "Ada.",
    ]
    assert [path.name for path in (tmp_path / ".ropewalk" / "sessions").iterdir()] == ["ada"]


def deletes():
    return ScriptedModel([use("delete_file", {"path": "notes.txt"}), "It is done."])


def result_of_the_tool(names):
    return names["agent"].messages[2]["content"][0]["toolResult"]["content"][0]["text"]


@pytest.mark.parametrize(("answer", "told"), [("y", "notes.txt is deleted"), ("n", "CONFIRMATION_FAILED")])
def test_the_tool_runs_when_the_human_says_yes(blocks, answer, told, capsys):
    asked = []
    names = example(blocks, "HumanInTheLoop", deletes(), input=lambda question: asked.append(question) or answer)

    assert told in result_of_the_tool(names)
    assert names["result"].stop_reason == "end_turn"
    assert len(asked) == 1
    assert "notes.txt" in asked[0]
    assert "It is done." in capsys.readouterr().out


def test_the_run_pauses_at_both_checkpoints_and_ends(blocks, capsys):
    above = example(blocks, "HumanInTheLoop", deletes(), input=lambda _: "y")
    capsys.readouterr()
    below = {name: above[name] for name in ("Agent", "delete_file")}
    names = example(blocks, "checkpointing=True", deletes(), **below)

    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("after_")] == [
        "after_model",
        "after_tools",
    ]
    assert result_of_the_tool(names) == "notes.txt is deleted"


def test_a_large_result_leaves_the_context_and_can_be_read(blocks):
    agent = example(blocks, "context_manager", ScriptedModel(["Hello."]), Agent=Agent)["agent"]

    assert str(agent("Hello.")) == "Hello.\n"
    assert "retrieve_offloaded_content" in agent.tool_names
    assert {"summarize", "offload"} <= {plugin.name for plugin in agent.hooks.plugins}


def test_the_next_model_answers_when_the_first_is_overloaded(blocks):
    first = ScriptedModel([ModelThrottledException("slow down")])
    spare = ScriptedModel(["From the spare one."])
    (code,) = [text for _, text in blocks if '"fallback"' in text]
    code = code.replace('"litellm:openai/gpt-4o"', "first").replace('["local"]', "[spare]")
    names = {"Agent": Agent, "first": first, "spare": spare}
    exec(compile(code, "README.md", "exec"), names)

    assert str(names["agent"]("Hello.")) == "From the spare one.\n"
    assert (first.calls, spare.calls) == (1, 1)


def test_the_model_strings_have_owners(readme):
    strings = re.findall(r'(?m)^\| .*?`"([^"`]+)"`.* \|$', readme)
    assert [string.partition(":")[0] for string in strings] == ["local", "amazon.nova-lite-v1", "litellm"]
    assert {"model.local", "model.litellm", "model.bedrock"} <= set(PARAMETERS)


def test_the_commands_of_the_shell_exist_and_take_these_arguments(blocks):
    _, text = [block for block in blocks if block[0] == "bash"][1]
    root = program
    for line in text.splitlines():
        first, *arguments = shlex.split(line)
        assert first == "ropewalk"
        group = root
        while isinstance(group, click.Group):
            name, group, arguments = group.resolve_command(click.Context(group), arguments)
            assert name

        group.make_parser(click.Context(group)).parse_args(list(arguments))


def test_the_entry_point_names_the_plugin_of_the_example(blocks):
    (text,) = [text for language, text in blocks if language == "toml"]
    entries = tomllib.loads(text)["project"]["entry-points"]["ropewalk.plugins"]
    assert entries == {"stopwatch": "ropewalk_stopwatch:StopwatchPlugin"}
    assert example(blocks, "StopwatchPlugin")["StopwatchPlugin"].name in entries
