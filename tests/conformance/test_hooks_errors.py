"""Hooks: what becomes of callbacks' errors (lines 77 to 96)."""

from __future__ import annotations

import pytest

from ropewalk import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    ModelThrottledException,
    tool,
)
from ropewalk.kits.lifecycle import EVENTS
from ropewalk_testing import assert_valid_history, use

EVERY_MOMENT = [event for event in EVENTS if event is not AgentInitializedEvent]


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


ASKING = use("add", {"a": 3, "b": 4}, id="A")


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event_type", EVERY_MOMENT)
def test_what_a_callback_raises_reaches_the_caller_and_leaves_the_agent_usable(ask, make_agent, event_type):
    agent, _ = make_agent([ASKING, "Fine.", "Fine.", "Fine."], tools=[add])
    failing = [True]

    async def fail(event):
        if failing:
            failing.clear()
            raise LookupError("broken")

    agent.add_hook(fail, event_type)
    with pytest.raises(LookupError, match="broken") as caught:
        ask(agent, "Hi.")

    assert any("fail" in note and event_type.__name__ in note for note in caught.value.__notes__)
    assert_valid_history(agent.messages)
    assert ask(agent, "again").stop_reason == "end_turn"
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("event_type", EVERY_MOMENT)
def test_a_raising_callback_stops_the_others_only_before_something_happens(ask, make_agent, event_type):
    agent, _ = make_agent([ASKING, "Fine."], tools=[add])
    others = []

    def fail(event):
        raise LookupError("broken")

    agent.add_hook(fail, event_type, order=0)
    agent.add_hook(lambda event: others.append(1), event_type, order=1)
    with pytest.raises(LookupError):
        ask(agent, "Hi.")

    assert bool(others) is event_type.__name__.startswith("After")


def test_several_errors_at_the_end_come_together(ask, make_agent):
    agent, _ = make_agent(["Hello."])
    for text in ("one", "two"):

        def fail(event, text=text):
            raise LookupError(text)

        agent.add_hook(fail, AfterInvocationEvent)

    with pytest.raises(ExceptionGroup) as caught:
        ask(agent, "Hi.")

    assert [str(error) for error in caught.value.exceptions] == ["two", "one"]


def test_the_end_of_a_failed_invocation_is_told_without_a_result(ask, make_agent):
    agent, _ = make_agent([ModelThrottledException("busy")], retry_strategy=None)
    ended = []

    def end(event: AfterInvocationEvent):
        ended.append(event.result)
        event.resume = "again"

    agent.add_hook(end)
    with pytest.raises(ModelThrottledException, match="busy"):
        ask(agent, "Hi.")

    assert ended == [None]


@pytest.mark.parametrize(
    ("event_type", "field", "value"),
    [
        (BeforeInvocationEvent, "messages", 5),
        (BeforeInvocationEvent, "messages", []),
        (AfterInvocationEvent, "resume", 5),
        (BeforeToolCallEvent, "tool_use", "add"),
        (BeforeToolCallEvent, "tool_use", {"toolUseId": "other", "name": "add", "input": {}}),
        (BeforeToolCallEvent, "selected_tool", "add"),
        (AfterToolCallEvent, "result", "text"),
        (AfterToolsEvent, "end_turn", 5),
        (AfterToolsEvent, "end_turn", [{"no": "block"}]),
    ],
)
def test_a_value_that_a_field_does_not_take_is_an_error_that_says_so(ask, make_agent, event_type, field, value):
    agent, _ = make_agent([ASKING, "Fine."], tools=[add])
    agent.add_hook(lambda event: setattr(event, field, value), event_type)

    with pytest.raises(ValueError):
        ask(agent, "Hi.")

    assert_valid_history(agent.messages)


def test_the_event_after_a_tool_call_carries_what_the_tool_raised(ask, make_agent):
    """Conformance 91."""
    seen = []

    @tool
    def fail() -> str:
        """Fails."""
        raise LookupError("nothing there")

    def look(event: AfterToolCallEvent) -> None:
        seen.append(event.exception)

    agent, _ = make_agent([use("fail", {}), "done"], tools=[fail], hooks=[look])
    ask(agent, "go")

    [raised] = seen
    assert isinstance(raised, LookupError)
