"""What a model, a tool or a user says reaches the provider in a form that it takes (scenarios A5, A13 and A18)."""

from __future__ import annotations

import re

import pytest
from provider_wires import over_http

from ropewalk import tool
from ropewalk_testing import assert_valid_history, use

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
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
def test_arguments_that_are_no_json_object_do_not_run_the_tool(ask, provider, purge, purged, raw):
    """Scenario A5."""
    agent, server = provider.make([use("purge", raw, id="T1"), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"

    assert purged == []
    assert provider.sent_calls(server) == [("T1", "purge", {})]
    ((use_id, failed, said),) = provider.sent_answers(server)
    assert (use_id, failed) == ("T1", True)
    assert "JSON" in said
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("raw", ["", " ", "   ", "\n"])
def test_blank_arguments_are_an_empty_object(ask, provider, purge, purged, raw):
    """Scenario A5."""
    agent, _ = provider.make([use("purge", raw), "ok"], tools=[purge])

    ask(agent, "go")

    assert purged == ["*"]


@over_http
def test_half_an_emoji_reaches_the_provider_as_legal_text(ask, provider, waits):
    """Scenario A13."""

    @tool
    def broken() -> str:
        """Gives half an emoji."""
        return "bad \ud83d end"

    agent, server = provider.make([use("broken", {}), "ok"], tools=[broken], system_prompt="s \ud83d")

    ask(agent, "p \ud83d")

    body = server.requests[1].body
    system, prompt = body.get("system") or body["messages"][0]["content"], body["messages"][-3]["content"]
    assert (system, prompt) in [([{"text": "s \ufffd"}], [{"text": "p \ufffd"}]), ("s \ufffd", "p \ufffd")]
    ((_, _, said),) = provider.sent_answers(server)
    assert said == "bad \ufffd end"
    assert waits == []


@over_http
@pytest.mark.parametrize("name", ["bad name!", "admin.tools.list", "名前", "", "x" * 65])
def test_a_name_that_the_model_invents_is_sent_back_legal(ask, provider, calculators, name):
    """Scenario A18."""
    agent, server = provider.make([use(name, {}, id="T1"), "ok"], tools=calculators)

    assert ask(agent, "go").stop_reason == "end_turn"

    ((use_id, sent, _),) = provider.sent_calls(server)
    assert use_id == "T1"
    assert LEGAL_NAME.fullmatch(sent)
    ((_, failed, _),) = provider.sent_answers(server)
    assert failed
