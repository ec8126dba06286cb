"""Tool arguments that cannot be parsed never become `{}` (scenario A5)."""

from __future__ import annotations

import json

import pytest

from ropewalk_testing import use


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
