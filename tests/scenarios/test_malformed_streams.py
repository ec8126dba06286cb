"""Events that are none, and models that are none (scenario A3: the kind behind it)."""

from __future__ import annotations

import pytest

from ropewalk.errors import MalformedStreamError, ModelError
from ropewalk_testing import assert_valid_history, turn

BEGIN = {"messageStart": {"role": "assistant"}}
WORDS = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "words"}}}
STOP = {"messageStop": {"stopReason": "end_turn"}}

NONE = [
    42,
    None,
    "text",
    {"contentBlockDelta": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": 5}}},
    {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": "add"}}},
]


@pytest.mark.parametrize("event", NONE, ids=repr)
def test_an_event_that_is_none_is_a_retryable_error_and_stores_nothing(ask, make_agent, event):
    """Scenario A3."""
    agent, _ = make_agent([turn(raw=[BEGIN, WORDS, event, STOP]), "back"], retry_strategy=None)

    with pytest.raises(MalformedStreamError) as caught:
        ask(agent, "one")

    assert caught.value.retryable
    assert list(agent.messages) == []
    assert str(ask(agent, "two")) == "back\n"


ODD = [
    {},
    {"somethingNew": {"x": 1}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"somethingNew": 1}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": None}}},
    {"contentBlockStart": {"contentBlockIndex": 0}},
    {"contentBlockStop": {}},
    {"contentBlockStop": {"contentBlockIndex": 7}},
    {"metadata": {}},
    {"metadata": {"usage": None, "metrics": None}},
    {"metadata": {"usage": {"inputTokens": 3}}},
    BEGIN,
]


@pytest.mark.parametrize("event", ODD, ids=repr)
def test_an_event_that_says_nothing_or_something_new_is_passed_over(ask, make_agent, event):
    """Scenario A3."""
    agent, _ = make_agent([turn(raw=[BEGIN, WORDS, event, STOP])])

    result = ask(agent, "go")

    assert (result.stop_reason, str(result)) == ("end_turn", "words\n")
    assert_valid_history(agent.messages)


def test_events_after_the_stop_still_count_the_tokens(ask, make_agent):
    """Scenario A3."""
    usage = {
        "metadata": {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "metrics": {"latencyMs": 1}}
    }
    agent, _ = make_agent([turn(raw=[BEGIN, WORDS, STOP, usage])])

    assert ask(agent, "go").metrics.accumulated_usage["totalTokens"] == 7


class Returns:
    """A model whose stream is no stream."""

    def __init__(self, value):
        self.value = value

    def stream(self, request):
        return self.value


@pytest.mark.parametrize(
    "value",
    [None, [BEGIN, WORDS, STOP], iter([BEGIN, WORDS, STOP]), "text"],
    ids=["nothing", "a list", "an iterator", "a text"],
)
def test_a_model_without_a_stream_is_an_error_that_says_so(ask, make_agent, value):
    """Scenario A3."""
    agent, _ = make_agent(Returns(value))

    with pytest.raises(ModelError, match="iterator"):
        ask(agent, "go")

    assert list(agent.messages) == []
