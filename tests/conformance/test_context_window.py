"""Conformance 151, 153, 154, 156 and 163: the conversation manager."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import (
    ConcurrentInvocationMode,
    ContextWindowOverflowException,
    NullConversationManager,
    SlidingWindowConversationManager,
    tool,
)
from ropewalk_testing import assert_valid_history, turn, use


@tool
async def look(size: int) -> str:
    """Looks.

    Args:
        size: How much there is to see.
    """
    return "x" * size


def overflow():
    return ContextWindowOverflowException("the prompt is too long")


def chat(count):
    return [
        {"role": role, "content": [{"text": f"{letter}{i}"}]}
        for i in range(count)
        for role, letter in (("user", "q"), ("assistant", "a"))
    ]


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 10, 40])
def test_the_window_trims_a_chat_to_its_size(ask, make_agent, size):
    """Conformance 151."""
    agent, _ = make_agent(["new"], messages=chat(30), conversation_manager=SlidingWindowConversationManager(size))

    ask(agent, "more")

    assert size - 1 <= len(agent.messages) <= size
    assert [m["content"][0]["text"] for m in agent.messages[-2:]] == ["more", "new"]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("size", range(1, 12))
def test_the_window_never_splits_a_tool_pair_and_begins_with_the_user(ask, make_agent, size):
    """Conformance 151 and 153 (B)."""
    two = [use("look", {"size": 1}), use("look", {"size": 2})]
    agent, _ = make_agent(
        [*[two] * 4, "done"], tools=[look], conversation_manager=SlidingWindowConversationManager(size)
    )

    ask(agent, "task")

    assert_valid_history(agent.messages)
    assert agent.messages[0]["role"] == "user"
    assert agent.messages[0]["content"] == [{"text": "task"}]
    assert len(agent.messages) <= max(size, 2)


def test_a_history_that_is_trimmed_is_what_the_next_request_has(ask, make_agent, shape):
    """Conformance 153 (B)."""
    manager = SlidingWindowConversationManager(4)
    agent, model = make_agent(["one", "two"], messages=chat(5), conversation_manager=manager)
    ask(agent, "more")
    kept = shape(agent.messages)

    ask(agent, "and more")

    assert shape(model.requests[1].messages) == [*kept, ("user", [{"text": "and more"}])]
    assert kept[0] == ("user", [{"text": "q0"}])


def test_after_an_overflow_the_oldest_results_are_shortened_and_nothing_else(ask, make_agent, tool_results):
    """Conformance 154."""
    calls = [use("look", {"size": 10_000}, id=f"T{i}") for i in range(4)]
    agent, model = make_agent([*calls, overflow(), "done"], tools=[look])

    result = ask(agent, "task")

    texts = [each["content"][0]["text"] for each in tool_results(model.requests[5].messages)]
    assert str(result) == "done\n"
    assert len(model.requests[5].messages) == len(model.requests[4].messages)
    assert texts[0] == "x" * 200 + "... [truncated: 9600 chars removed] ..." + "x" * 200
    assert texts[-1] == "x" * 10_000
    assert_valid_history(agent.messages)


def test_results_that_are_short_already_make_the_oldest_turns_go(ask, make_agent):
    """Conformance 154."""
    calls = [use("look", {"size": 10}, id=f"T{i}") for i in range(8)]
    agent, model = make_agent([*calls, overflow(), "done"], tools=[look])

    ask(agent, "task")

    assert len(model.requests[9].messages) < len(model.requests[8].messages)
    assert model.requests[9].messages[0]["content"] == [{"text": "task"}]
    assert_valid_history(model.requests[9].messages)


def test_without_a_manager_the_overflow_is_raised_again(ask, make_agent):
    """Conformance 156."""
    error = overflow()
    agent, model = make_agent([error, "never"], messages=chat(5), conversation_manager=NullConversationManager())

    with pytest.raises(ContextWindowOverflowException) as caught:
        ask(agent, "more")

    assert caught.value is error
    assert model.calls == 1
    assert agent.messages == chat(5)


@pytest.mark.parametrize("parameter", ["conversation_manager", "context_manager"])
def test_an_unknown_preset_is_a_value_error(make_agent, parameter):
    """Conformance 163."""
    with pytest.raises(ValueError, match=parameter):
        make_agent(["never"], **{parameter: "nonsense"})


@pytest.mark.parametrize("size", [-1, -40, 1.5, "many"])
def test_a_window_that_is_none_is_a_value_error(size):
    with pytest.raises(ValueError, match="window_size"):
        SlidingWindowConversationManager(size)


def test_a_turn_that_never_fits_is_given_up_after_a_bounded_number_of_calls(ask, make_agent):
    agent, model = make_agent(lambda request: overflow(), messages=chat(15))

    with pytest.raises(ContextWindowOverflowException):
        ask(agent, "more")

    assert model.calls <= 5
    assert agent.messages[:30] == chat(15)
    assert_valid_history(agent.messages)


def test_a_first_turn_that_never_fits_leaves_no_prompt(ask, make_agent):
    agent, _ = make_agent(lambda request: overflow(), messages=chat(15))

    with pytest.raises(ContextWindowOverflowException):
        ask(agent, "more")

    assert agent.messages == chat(15)


async def test_a_run_beside_the_conversation_that_is_trimmed_appends_what_it_added(make_agent):
    """Conformance 143 and 151."""
    agent, model = make_agent(
        [turn("one", stall=True), "two"],
        messages=chat(5),
        conversation_manager=SlidingWindowConversationManager(4),
        concurrent_invocation_mode=ConcurrentInvocationMode.UNSAFE_REENTRANT,
    )
    first = asyncio.ensure_future(agent.invoke_async("1"))
    await model.wait_stalled()
    await agent.invoke_async("2")
    model.release()
    await first

    texts = [message["content"][0]["text"] for message in agent.messages]
    assert sorted(texts[-4:]) == ["1", "2", "one", "two"]
    assert texts[0] == "q0"
    assert_valid_history(agent.messages)
