"""Tool arguments that cannot be parsed never become `{}` (scenario A5)."""

from __future__ import annotations

import json

import pytest

from ropewalk import tool
from ropewalk_testing import assert_valid_history, use


@pytest.fixture
def purged():
    """The prefixes that were purged."""
    return []


@pytest.fixture
def purge(purged):
    """A tool whose default is its widest action."""

    @tool
    def purge(prefix: str = "*") -> str:
        """Deletes everything that starts with the prefix."""
        purged.append(prefix)
        return "purged"

    return purge


BROKEN = [
    '{"prefix": "tmp/',
    '{}""',
    '"{\\"prefix\\": \\"x\\"}"',
    "null",
    "[]",
    '""',
    "{prefix: x}",
    "{'prefix': 'x'}",
    "{}{}",
]


@pytest.mark.parametrize("raw", BROKEN)
def test_arguments_that_are_no_json_object_do_not_run_the_tool(
    ask, make_agent, purge, purged, tool_results, result_text, raw
):
    """Scenario A5."""
    agent, model = make_agent([use("purge", raw, id="T1"), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"

    assert purged == []
    (result,) = tool_results(agent.messages)
    assert (result["toolUseId"], result["status"]) == ("T1", "error")
    assert "JSON" in result_text(result)
    assert model.requests[1].messages[1]["content"] == [{"toolUse": {"toolUseId": "T1", "name": "purge", "input": {}}}]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("raw", ["", " ", "   ", "\n"])
def test_blank_arguments_are_an_empty_object(ask, make_agent, purge, purged, raw):
    """Scenario A5."""
    agent, _ = make_agent([use("purge", raw), "ok"], tools=[purge])

    ask(agent, "go")

    assert purged == ["*"]


def test_two_broken_calls_get_two_error_results(ask, make_agent, purge, purged, tool_results):
    """Scenario A5."""
    turns = [[use("purge", "{", id="A"), use("purge", {"prefix": "tmp/"}, id="B"), use("purge", "[", id="C")], "ok"]
    agent, _ = make_agent(turns, tools=[purge])

    ask(agent, "go")

    assert purged == ["tmp/"]
    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [
        ("A", "error"),
        ("B", "success"),
        ("C", "error"),
    ]


@pytest.mark.parametrize("raw", ['{"prefix": NaN}', '{"prefix": "a", "prefix": "b"}', '{"prefix": 1e999}'])
def test_json_that_is_not_strict_leaves_a_history_that_is(ask, make_agent, purge, raw):
    """Scenario A5."""
    agent, model = make_agent([use("purge", raw), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"
    json.dumps(model.requests[1].messages, allow_nan=False)


def test_deeply_nested_arguments_do_not_crash_the_run(ask, make_agent, purge, purged, tool_results):
    """Scenario A5."""
    agent, _ = make_agent([use("purge", '{"prefix": ' + "[" * 100_000), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"
    assert [result["status"] for result in tool_results(agent.messages)] == ["error"]
    assert purged == []
