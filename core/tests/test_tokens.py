"""The count of a conversation's tokens."""

from __future__ import annotations

import sys

import pytest

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
