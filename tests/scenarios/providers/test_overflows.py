"""A request that is too long is told from every other error (scenario A6)."""

from __future__ import annotations

import pytest
from provider_wires import over_http

from ropewalk.errors import ContextWindowOverflowException, ModelError
from ropewalk_testing.servers import http_fault, stream_fault

OVERFLOWS = [
    "prompt is too long: 203470 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 142422 + 64000 > 204658",
    "Input is too long for requested model",
    "This model's maximum context length is 131072 tokens",
    "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
    "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
    "Input Tokens Exceeded: the number of input tokens is above the limit",
]
NO_OVERFLOWS = [
    (429, "throttled", "Too many tokens per minute, please wait before trying again."),
    (400, "invalid", "messages.0.content is too long for this field"),
    (400, "invalid", "The maximum tokens you requested exceeds the model limit of 2048"),
]


@over_http
@pytest.mark.parametrize("spelling", [str, str.upper, str.lower])
@pytest.mark.parametrize("words", OVERFLOWS)
def test_an_overflow_is_known_by_its_words(provider, words, spelling):
    """Scenario A6."""
    agent, _ = provider.make([http_fault(400, provider.codes["invalid"], spelling(words))])

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("go")

    assert spelling(words).rstrip(".") in str(caught.value)


@over_http
def test_an_overflow_inside_the_stream_is_known_too(provider):
    """The kind behind A6."""
    agent, _ = provider.make([stream_fault(provider.codes["invalid, in the stream"], OVERFLOWS[0])])

    with pytest.raises(ContextWindowOverflowException):
        agent("go")


@over_http
@pytest.mark.parametrize(("status", "code", "words"), NO_OVERFLOWS, ids=[words for _, _, words in NO_OVERFLOWS])
def test_what_only_looks_like_an_overflow_is_none(provider, status, code, words):
    """Scenario A6."""
    agent, _ = provider.make([http_fault(status, provider.codes[code], words)], retry_strategy=None)

    with pytest.raises(ModelError) as caught:
        agent("go")

    assert not isinstance(caught.value, ContextWindowOverflowException)
    assert words.rstrip(".") in str(caught.value)
