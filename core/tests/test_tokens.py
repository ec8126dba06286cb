"""The count of a conversation's tokens."""

from __future__ import annotations

import sys

import pytest
from kernel_fakes import FakeModel

from ropewalk import Agent
from ropewalk.kits.messages import tokens
from ropewalk.kits.messages.tokens import TokenCount


def chat(count):
    return [
        {"role": "assistant" if place % 2 else "user", "content": [{"text": "word " * 20}]} for place in range(count)
    ]


def usage(read, wrote):
    return {"inputTokens": read, "outputTokens": wrote, "totalTokens": read + wrote}


def lines_of(call):
    """How many lines of Python a call runs: a measure of work that no clock disturbs."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)

    return count


def counted(messages):
    """A count that has seen the messages and the usage of the last of them."""
    count = TokenCount()
    count.of(messages, 0, lambda: 10)
    count.observe(usage(1_000, 50), messages[-1])
    assert count.of(messages, 0, lambda: 10) == 1_050
    return count


@pytest.mark.parametrize("length", [10, 100, 10_000])
def test_counting_a_new_turn_looks_at_the_new_messages_only(length, monkeypatch):
    messages = chat(length)
    count = counted(messages)
    looked_at = []
    plain = tokens.message_tokens
    monkeypatch.setattr(tokens, "message_tokens", lambda message: looked_at.append(message) or plain(message))

    messages += chat(2)

    assert count.of(messages, 0, lambda: 10) == 1_050 + 2 * 25
    assert count.of(messages, 0, lambda: 10) == 1_050 + 2 * 25
    assert looked_at == messages[-2:]


def test_the_work_of_counting_a_new_turn_does_not_grow_with_the_history():
    work = {}
    for length in (10, 100, 10_000):
        messages = chat(length)
        count = counted(messages)
        messages += chat(2)
        work[length] = lines_of(lambda: count.of(messages, 0, lambda: 10))  # noqa: B023 - called at once

    assert len(set(work.values())) == 1, work


def test_after_a_splice_what_was_measured_is_not_measured_again(monkeypatch):
    messages = chat(100)
    count = counted(messages)
    monkeypatch.setattr(tokens, "message_tokens", lambda message: 1 // 0)

    assert count.of(messages[:1] + messages[51:], 1, lambda: 10) < 1_050


def test_a_system_prompt_that_came_later_is_in_the_count_after_a_splice():
    messages = chat(10)
    count = TokenCount()
    count.of(messages, 0, lambda: 10)
    count.observe(usage(50_000, 5), messages[-1])

    assert count.of(messages[:1], 1, lambda: 49_750) == pytest.approx(49_775, rel=0.01)


def test_tools_that_went_are_not_counted_any_more_after_a_splice():
    messages = chat(10)
    count = TokenCount()
    count.of(messages, 0, lambda: 50_000)
    count.observe(usage(245, 5), messages[-1])

    assert count.of(messages[:5], 1, lambda: 0) == 125


def test_what_stands_around_is_not_estimated_while_the_usage_tells_it():
    messages = chat(10)
    count = counted(messages)
    messages += chat(2)

    assert count.of(messages, 0, lambda: 1 // 0) == 1_050 + 2 * 25


@pytest.mark.parametrize(("wrote", "left"), [(50, 50), (1_000, 1_000), (1_100, 1_100), (1_101, 25), (40_000, 25)])
def test_thinking_that_is_not_in_the_answer_is_not_in_the_next_request(wrote, left):
    messages = chat(10)
    count = TokenCount()
    count.observe(usage(1_000, wrote), messages[-1])

    assert count.of(messages, 0, lambda: 10) == 1_000 + left


def test_thinking_that_is_in_the_answer_is_in_the_next_request():
    thought = {"reasoningContent": {"reasoningText": {"text": "word " * 8_000}}}
    messages = [chat(1)[0], {"role": "assistant", "content": [thought, {"text": "so"}]}]
    count = TokenCount()
    count.observe(usage(1_000, 11_000), messages[-1])

    assert count.of(messages, 0, lambda: 10) == 12_000


READ = {
    "nothing cached": {"inputTokens": 50_000},
    "partly from the cache": {"inputTokens": 20_000, "cacheReadInputTokens": 30_000},
    "all from the cache": {"inputTokens": 0, "cacheReadInputTokens": 50_000},
    "all into the cache": {"inputTokens": 0, "cacheWriteInputTokens": 50_000},
    "from one cache into another": {"inputTokens": 0, "cacheReadInputTokens": 1, "cacheWriteInputTokens": 49_999},
    "no other count": {"cacheReadInputTokens": 50_000},
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("total", [{}, {"totalTokens": 50_005}], ids=["no total", "a total"])
def test_the_tokens_of_a_prompt_count_wherever_the_provider_had_it_from(read, total):
    answer = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {**read, "outputTokens": 5, **total}}},
    ]
    agent = Agent(model=FakeModel(answer))
    agent("go")

    assert agent.history.tokens.of(agent.messages, agent.history.version, lambda: 0) == 50_005


@pytest.mark.parametrize("said", [{}, {"inputTokens": 0, "outputTokens": 0}, {"outputTokens": 9}], ids=str)
def test_a_provider_that_does_not_count_the_prompt_leaves_it_to_the_estimate(said):
    answer = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "word " * 20}}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": said}},
    ]
    agent = Agent(model=FakeModel(answer))
    agent("word " * 20)

    assert agent.history.tokens.of(agent.messages, agent.history.version, lambda: 100) == 150
