"""The prompt grows at its end: a request begins with the one before, byte for byte, so providers can cache it."""

from __future__ import annotations

import json

import pytest

from ropewalk import tool
from ropewalk.kits.hooks.discovery import registry
from ropewalk_testing import reasoning, text, turn, use


@tool
async def look(size: int) -> dict:
    """Looks.

    Args:
        size: How much there is to see.
    """
    return {"seen": "x" * size, "rest": [size, None, 1.5]}


@tool
async def fail() -> str:
    """Fails."""
    raise ValueError("no luck")


def answers(count):
    kinds = [
        use("look", {"size": 3}),
        [text("let me see"), use("look", {"size": 40}), use("fail", {})],
        turn(reasoning("hm"), use("look", {"size": 0})),
        use("nothing", {}),
    ]
    return [kinds[index % len(kinds)] for index in range(count)]


def without_cache_points(value):
    if isinstance(value, dict):
        return {key: without_cache_points(each) for key, each in value.items()}

    if isinstance(value, list | tuple):
        return [without_cache_points(each) for each in value if not (isinstance(each, dict) and "cachePoint" in each)]

    return value


def serialised(request):
    """What stands before the messages, and the messages one by one."""
    messages = [{"role": m["role"], "content": m["content"]} for m in request.messages]
    head = json.dumps(without_cache_points([request.system, request.tool_specs, request.tool_choice]))
    return head, [json.dumps(without_cache_points(message)) for message in messages]


def assert_each_extends_the_one_before(requests):
    (head, before), *others = map(serialised, requests)
    for number, (next_head, messages) in enumerate(others, 1):
        assert next_head == head, f"request {number} has another head"
        assert messages[: len(before)] == before, f"request {number} does not begin with request {number - 1}"
        assert len(messages) > len(before)
        before = messages


def bundled_and_unasked():
    return {name for name, plugin in registry().installed.items() if not plugin.on_demand}


def test_over_twenty_turns_each_request_begins_with_the_one_before(make_agent):
    agent, model = make_agent([*answers(19), "done"], tools=[look, fail], system_prompt="Be brief.")

    agent("the task")

    assert {plugin.name for plugin in agent.hooks.plugins} >= bundled_and_unasked() - {"console"}
    assert "window" in {plugin.name for plugin in agent.hooks.plugins}
    assert len(model.requests) == 20
    assert_each_extends_the_one_before(model.requests)


def test_over_twenty_calls_each_request_begins_with_the_one_before(make_agent):
    agent, model = make_agent([f"answer {number}" for number in range(20)], system_prompt="Be brief.")

    for number in range(20):
        agent(f"question {number}")

    assert_each_extends_the_one_before(model.requests)


def test_a_changed_prefix_would_be_seen(make_agent):
    agent, model = make_agent(["a", "b"])
    agent("one")
    agent.messages[0] = {"role": "user", "content": [{"text": "another"}]}
    agent("two")

    with pytest.raises(AssertionError, match="does not begin"):
        assert_each_extends_the_one_before(model.requests)
