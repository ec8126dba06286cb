"""Conformance 160, without "auto": large tool results leave the context, and come back by their references."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ropewalk import Agent, ContextOffloader, FileSessionManager, tool
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk_testing import ScriptedModel, assert_valid_history, use

GET = "retrieve_offloaded_content"
ROWS = 4_000

AGENT = """
import sys
from ropewalk import Agent, ContextOffloader, FileSessionManager, tool
from ropewalk_testing import ScriptedModel, use

folder = sys.argv[1]

@tool
def read_log() -> str:
    \"\"\"Reads a long log.\"\"\"
    return "\\n".join(f"entry {i}: nothing happened" for i in range(4_000))

agent = Agent(
    model=ScriptedModel([use("read_log"), "There is a log."]),
    tools=[read_log],
    session_manager=FileSessionManager("s", folder + "/sessions"),
    plugins=[ContextOffloader(folder + "/offloaded")],
    callback_handler=None,
)
agent("What is in the log?")
"""


@tool
def read_log() -> str:
    """Reads a long log."""
    return "\n".join(f"entry {i}: nothing happened" for i in range(ROWS))


def reference_in(text):
    return re.search(r"off_[0-9a-f]{20}", text).group()


def test_a_long_result_becomes_a_preview_and_the_tool_brings_it_back(ask, make_agent, tool_results, result_text):
    def find(request):
        reference = reference_in(result_text(tool_results(request.messages)[-1]))
        return use(GET, {"reference": reference, "pattern": "entry 777:", "context_lines": 0})

    agent, model = make_agent([use("read_log"), find, "Done."], tools=[read_log], plugins=[ContextOffloader()])

    ask(agent, "What is in the log?")

    stored, found = map(result_text, tool_results(agent.messages))
    assert "entry 0:" in stored
    assert f"entry {ROWS - 1}:" in stored
    assert found == "778: entry 777: nothing happened"
    assert all(sum(map(message_tokens, request.messages)) < 1_500 for request in model.requests)
    assert_valid_history(agent.messages)


def test_results_of_one_message_are_offloaded_each_for_itself(ask, make_agent, tool_results, result_text):
    turns = [[use("read_log", id="a"), use("read_log", id="b")], "Done."]
    agent, _ = make_agent(turns, tools=[read_log], plugins=[ContextOffloader()])

    ask(agent, "Go.")

    one, other = map(result_text, tool_results(agent.messages))
    assert reference_in(one) != reference_in(other)
    assert [result["toolUseId"] for result in tool_results(agent.messages)] == ["a", "b"]


def test_a_reference_resolves_in_another_process(tmp_path, tool_results, result_text):
    subprocess.run([sys.executable, "-c", AGENT, str(tmp_path)], check=True, timeout=300)

    def find(request):
        reference = reference_in(result_text(tool_results(request.messages)[0]))
        return use(GET, {"reference": reference, "line_range": {"start": 3_000, "end": 3_000}})

    agent = Agent(
        model=ScriptedModel([find, "Done."]),
        session_manager=FileSessionManager("s", tmp_path / "sessions"),
        plugins=[ContextOffloader(tmp_path / "offloaded")],
        callback_handler=None,
    )
    agent("And entry 2,999?")

    assert result_text(tool_results(agent.messages)[1]) == "3000: entry 2999: nothing happened"


def test_the_file_session_holds_the_result_once(tmp_path, tool_results, result_text):
    agent = Agent(
        model=ScriptedModel([use("read_log"), "Done.", "More."]),
        tools=[read_log],
        session_manager=FileSessionManager("s", tmp_path / "sessions"),
        plugins=[ContextOffloader(tmp_path / "offloaded")],
        callback_handler=None,
    )
    agent("Go.")
    agent("More?")

    logs = "".join(path.read_text() for path in (tmp_path / "sessions").rglob("*.jsonl"))
    assert logs.count("entry 2000: nothing happened") == 1
    again = Agent(session_manager=FileSessionManager("s", tmp_path / "sessions"), callback_handler=None)
    assert list(again.messages) == list(agent.messages)


@pytest.mark.parametrize(("most", "shown"), [(1_000, 1_000), (1_000, 2_000)])
def test_a_preview_as_large_as_the_threshold_is_refused(most, shown):
    with pytest.raises(ValueError, match="a preview has to be smaller"):
        ContextOffloader(max_result_tokens=most, preview_tokens=shown)
