"""Scenarios A7 and A9: a history of nothing but tool turns, and one that a crash has left open."""

from __future__ import annotations

import pytest

from ropewalk import ContextWindowOverflowException, SlidingWindowConversationManager, tool
from ropewalk_testing import assert_valid_history, use

RESULT = "what was seen: " + "x" * 100


@tool
async def look(n: int) -> str:
    """Looks.

    Args:
        n: A number.
    """
    return RESULT


def calls():
    return [use("look", {"n": i}, id=f"T{i}") for i in range(8)]


def overflow():
    return ContextWindowOverflowException("the prompt is too long")


# -- A7 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [False, True], ids=["", "pinned"])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_history_of_tool_turns_shrinks_to_the_window(ask, make_agent, tool_results, size, pinned):
    prompt = {"role": "user", "content": [{"text": "task"}]}
    if pinned:
        prompt["metadata"] = {"custom": {"pinned": True}}

    agent, _ = make_agent([*calls(), "done"], tools=[look], conversation_manager=SlidingWindowConversationManager(size))
    ask(agent, [prompt])

    assert len(agent.messages) <= size
    assert agent.messages[0]["content"] == [{"text": "task"}]
    assert agent.messages[-1]["content"] == [{"text": "done"}]
    assert all(result["content"] == [{"text": RESULT}] for result in tool_results(agent.messages))
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("pinned", [False, True], ids=["", "pinned"])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_history_of_tool_turns_shrinks_after_an_overflow(ask, make_agent, tool_results, size, pinned):
    prompt = {"role": "user", "content": [{"text": "task"}]}
    if pinned:
        prompt["metadata"] = {"custom": {"pinned": True}}

    agent, model = make_agent(
        [*calls(), overflow(), "done"], tools=[look], conversation_manager=SlidingWindowConversationManager(size)
    )
    ask(agent, [prompt])

    before, after = model.requests[8].messages, model.requests[9].messages
    assert len(after) < len(before) == 17
    assert len(after) <= max(size, 3)
    assert after[0]["content"] == [{"text": "task"}]
    assert [result["toolUseId"] for result in tool_results(after)][-1] == "T7"
    assert all(result["content"] == [{"text": RESULT}] for result in tool_results(after))
    assert_valid_history(after)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_pinned_tool_turn_stays_whole(ask, make_agent, tool_results, size):
    agent, model = make_agent(
        ["done"],
        messages=[
            {"role": "user", "content": [{"text": "task"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "P", "name": "look", "input": {"n": 0}}}],
                "metadata": {"custom": {"pinned": True}},
            },
            {"role": "user", "content": [{"toolResult": {"toolUseId": "P", "status": "success", "content": []}}]},
            *[
                message
                for i in range(8)
                for message in (
                    {
                        "role": "assistant",
                        "content": [{"toolUse": {"toolUseId": f"T{i}", "name": "look", "input": {"n": i}}}],
                    },
                    {
                        "role": "user",
                        "content": [{"toolResult": {"toolUseId": f"T{i}", "status": "success", "content": []}}],
                    },
                )
            ],
        ],
        tools=[look],
        conversation_manager=SlidingWindowConversationManager(size),
    )
    ask(agent)

    assert tool_results(agent.messages)[0]["toolUseId"] == "P"
    assert [m["role"] for m in agent.messages[:3]] == ["user", "assistant", "user"]
    assert len(agent.messages) <= max(size, 4)
    assert model.calls == 1
    assert_valid_history(agent.messages)


# -- A9 ----------------------------------------------------------------------------------------------------------------

TASK = {"role": "user", "content": [{"text": "go"}]}
ANSWER = {"role": "assistant", "content": [{"text": "sure"}]}
TWO_CALLS = {
    "role": "assistant",
    "content": [{"toolUse": {"toolUseId": name, "name": "look", "input": {"n": 1}}} for name in ("T1", "T2")],
}
SECOND_ONLY = {
    "role": "user",
    "content": [{"toolResult": {"toolUseId": "T2", "status": "success", "content": [{"text": "seen"}]}}],
}
STORED = {
    "no result": [TASK, ANSWER, TASK, TWO_CALLS],
    "one result": [TASK, ANSWER, TASK, TWO_CALLS, SECOND_ONLY, ANSWER],
    "an answer at once": [TASK, TWO_CALLS, ANSWER],
}
PROMPTS = {
    "text": "continue",
    "nothing": None,
    "blocks": [{"text": "continue"}],
    "messages": [{"role": "user", "content": [{"text": "continue"}]}],
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_calls_that_a_crash_left_open_are_answered_before_the_first_request(
    ask, make_agent, tool_results, stored, prompt
):
    agent, model = make_agent(["done"], messages=stored, tools=[look])

    ask(agent, prompt)

    request = model.requests[0].messages
    assert_valid_history(request)
    results = {result["toolUseId"]: result["status"] for result in tool_results(request)}
    assert results == {"T1": "error", "T2": "success" if SECOND_ONLY in stored else "error"}
    at = next(place for place, message in enumerate(request) if message["content"] == TWO_CALLS["content"])
    assert [result["toolUseId"] for result in tool_results([request[at + 1]])] == ["T1", "T2"]


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_the_window_trims_around_calls_that_a_crash_left_open(ask, make_agent, stored, prompt):
    manager = SlidingWindowConversationManager(3, per_turn=True)
    agent, model = make_agent(["done"], messages=stored, tools=[look], conversation_manager=manager)

    ask(agent, prompt)

    assert_valid_history(model.requests[0].messages)
    assert_valid_history(agent.messages)
