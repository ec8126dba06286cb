"""Streams that end otherwise than their stop reason says, or not at all (scenario A3)."""

from __future__ import annotations

import pytest
from provider_wires import on_wires, uses_of
from stream_events import BEGIN, args, call, chunk, end, head, said, words

from ropewalk.errors import IncompleteStreamError, MaxTokensReachedException, ModelError
from ropewalk_testing import assert_valid_history, text, turn, use
from ropewalk_testing.servers import DONE


def test_a_tool_block_with_end_turn_is_run(ask, provider, calls, calculators):
    """Scenario A3 a."""
    agent, _ = provider.make([turn(use("add", {"a": 1, "b": 2}), stop="end_turn"), "3"], tools=calculators)

    assert str(ask(agent, "go")) == "3\n"
    assert calls == [("add", 1, 2)]


def test_tool_use_without_a_tool_block_is_a_plain_end(ask, provider, calculators):
    """Scenario A3 b."""
    agent, server = provider.make([turn("just words", stop="tool_use")], tools=calculators)

    result = ask(agent, "go")

    assert (result.stop_reason, str(result), server.calls) == ("end_turn", "just words\n", 1)


BROKEN_OFF = {
    "c: in a text": [BEGIN, said(0, "half an "), said(0, "answer")],
    "c: after a text": [BEGIN, said(0, "an answer"), end(0)],
    "d: in a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}')],
    "d: after a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}'), end(0)],
    "e: no event": [],
    "e: only the start": [BEGIN],
}
BROKEN_OFF_CHUNKS = {
    "c: in a text": [words("half an "), words("answer")],
    "c: in a text, with an end": [words("half an answer"), DONE],
    "d: in a call": [call(0, "T1", "add", '{"a": 1, "b": 2}')],
    "d: in a call, with an end": [call(0, "T1", "add", '{"a": 1, "b": 2}'), DONE],
    "e: no event": [],
    "e: only the end": [DONE],
    "e: only the start": [chunk({"role": "assistant", "content": ""}), DONE],
}


@on_wires(BROKEN_OFF, BROKEN_OFF_CHUNKS)
def test_a_stream_that_just_ends_is_a_retryable_error_and_stores_nothing(ask, provider, calls, calculators, events):
    """Scenario A3 c, d, e."""
    # The retry plugin is switched off: it would repeat the call.
    agent, _ = provider.make(["fine", provider.stream(events), "back"], tools=calculators, retry_strategy=None)
    ask(agent, "one")
    before = list(agent.messages)

    with pytest.raises(IncompleteStreamError) as caught:
        ask(agent, "two")

    assert isinstance(caught.value, ModelError)
    assert caught.value.retryable
    assert (calls, list(agent.messages)) == ([], before)
    assert str(ask(agent, "three")) == "back\n"
    assert_valid_history(agent.messages)


def test_a_call_cut_at_the_token_limit_is_not_run(ask, provider, calls, calculators):
    """Scenario A3 f."""
    cut = turn(text("I will"), use("add", '{"a": 1, "b"', id="T1"), stop="max_tokens")
    agent, _ = provider.make([cut, "back"], tools=calculators)

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert calls == []
    assert not uses_of(agent.messages[-1])
    assert str(ask(agent, "go on")) == "back\n"
    assert_valid_history(agent.messages)
