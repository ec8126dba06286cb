"""LiteLLM's exceptions become one typed error each, with the provider's words (scenario A6 among them)."""

from __future__ import annotations

import socket
import ssl

import pytest

from ropewalk.errors import (
    ContextWindowOverflowException,
    IncompleteStreamError,
    MalformedStreamError,
    ModelError,
    ModelThrottledException,
    UnknownModelError,
)
from ropewalk.kits.model_errors import ContentFilteredError, ModelAuthError, ModelRequestError, ModelUnavailableError
from ropewalk_litellm import LiteLLMModel
from ropewalk_litellm.errors import translated
from ropewalk_testing.servers import http_fault, stream_fault

PAGE = b"<!doctype html><html><head><title>t</title></head><body><h1>Our proxy is unwell</h1></body></html>"
FAULTS = {
    "throttled": (http_fault(429, "rate_limit_exceeded", "slow down"), ModelThrottledException, "slow down"),
    "tokens per minute": (
        http_fault(429, "tokens", "Rate limit reached: 90000 tokens per minute"),
        ModelThrottledException,
        "90000 tokens per minute",
    ),
    "no quota": (http_fault(429, "insufficient_quota", "You exceeded your current quota"), ModelAuthError, "quota"),
    "wrong key": (
        http_fault(401, "invalid_api_key", "Incorrect API key provided"),
        ModelAuthError,
        "Incorrect API key",
    ),
    "expired key": (http_fault(401, "token_expired", "The token has expired"), ModelAuthError, "has expired"),
    "wrong region": (http_fault(403, "unsupported_country", "Country not supported"), ModelAuthError, "Country"),
    "unknown model": (http_fault(404, "model_not_found", "The model m does not exist"), UnknownModelError, "does not"),
    "unknown parameter": (
        http_fault(400, "unsupported_parameter", "Unsupported parameter: 'foo'"),
        ModelRequestError,
        "'foo'",
    ),
    "filtered": (http_fault(400, "content_policy_violation", "it was flagged"), ContentFilteredError, "it was flagged"),
    "server error": (http_fault(500, "server_error", "we broke"), ModelUnavailableError, "we broke"),
    "overloaded": (http_fault(503, "overloaded", "we are busy"), ModelUnavailableError, "we are busy"),
    "timed out": (http_fault(408, "timeout", "too slow"), ModelUnavailableError, "too slow"),
    "a page": (http_fault(500, body=PAGE), ModelUnavailableError, "Our proxy is unwell"),
    "a page of a gateway": (http_fault(502, body=PAGE), ModelUnavailableError, "502"),
    "a page instead of an answer": (http_fault(200, body=PAGE), IncompleteStreamError, "finish_reason"),
    "throttled in the stream": (
        stream_fault("rate_limit_exceeded", "slow down", after=["half"]),
        ModelThrottledException,
        "slow down",
    ),
    "broken in the stream": (
        stream_fault("server_error", "we broke", after=["half"]),
        ModelUnavailableError,
        "we broke",
    ),
}


@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS.values(), ids=FAULTS)
async def test_each_fault_is_one_typed_error_with_the_providers_words(served, ask, collect, fault, kind, words):
    model, server = served([fault])

    with pytest.raises(kind) as caught:
        await collect(model, ask())

    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert server.calls == 1, "LiteLLM repeated the call by itself"


OVERFLOWS = [
    "prompt is too long: 203470 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 142422 + 64000 > 204658",
    "Input is too long for requested model",
    "This model's maximum context length is 131072 tokens",
    "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
    "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
    "Input Tokens Exceeded: 9279",
]


@pytest.mark.parametrize("words", [*OVERFLOWS, OVERFLOWS[0].upper()])
async def test_an_overflow_is_one_whatever_its_words(served, ask, collect, words):
    model, _ = served([http_fault(400, "invalid_request_error", words)])

    with pytest.raises(ContextWindowOverflowException) as caught:
        await collect(model, ask())

    assert words.rstrip(".") in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        "messages.0.content is too long for this field",
        "The maximum tokens you requested exceeds the model limit of 2048",
    ],
)
async def test_what_only_looks_like_an_overflow_is_none(served, ask, collect, words):
    model, _ = served([http_fault(400, "invalid_request_error", words)])

    with pytest.raises(ModelRequestError) as caught:
        await collect(model, ask())

    assert words in str(caught.value)


async def test_the_time_to_wait_is_taken_from_the_answer(served, ask, collect):
    model, _ = served([http_fault(429, "rate_limit_exceeded", "slow down", headers={"Retry-After": "7"})])

    with pytest.raises(ModelThrottledException) as caught:
        await collect(model, ask())

    error = caught.value
    assert error.retry_after == 7
    assert (error.provider, error.status, error.code) == ("litellm", 429, "rate_limit_exceeded")


async def test_a_server_that_is_not_there_is_unavailable(served, ask, collect):
    model, _ = served([], client_args={"api_base": "http://127.0.0.1:9/v1"})

    with pytest.raises(ModelUnavailableError, match="Connection"):
        await collect(model, ask())


async def test_a_server_that_speaks_no_tls_is_said_so_and_not_asked_again(served, ask, collect):
    _, server = served(["never"])
    secure = LiteLLMModel(
        "openai/m", client_args={"api_base": server.api_base.replace("http:", "https:"), "api_key": "k"}
    )

    with pytest.raises(ModelRequestError, match=r"SSL.*check api_base") as caught:
        await collect(secure, ask())

    assert not caught.value.retryable


REASONS = [
    (ssl.SSLCertVerificationError(1, "self-signed certificate"), ModelRequestError),
    (ssl.SSLError(1, "wrong version number"), ModelRequestError),
    (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), ModelRequestError),
    (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), ModelUnavailableError),
    (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), ModelUnavailableError),
    (ConnectionResetError(104, "Connection reset by peer"), ModelUnavailableError),
]


@pytest.mark.parametrize(("reason", "kind"), REASONS, ids=str)
def test_why_there_is_no_connection_is_told_and_only_what_may_pass_is_repeated(reason, kind):
    class InternalServerError(Exception):
        status_code = 500

    error = InternalServerError("OpenAIException - Connection error.")
    error.__cause__ = ValueError("Connection error.")
    error.__cause__.__context__ = reason

    found = translated(error)

    assert type(found) is kind
    assert f"Connection error: {reason}" in str(found)


@pytest.mark.parametrize("model_id", ["no-such-provider/m", "m"])
async def test_an_unknown_provider_is_an_unknown_model(served, ask, collect, model_id):
    model, server = served([], model_id=model_id)

    with pytest.raises(UnknownModelError, match="LLM Provider NOT provided"):
        await collect(model, ask())

    assert server.calls == 0


async def test_without_a_key_the_error_says_where_one_may_be_put(served, ask, collect, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model, _ = served([], model_id="anthropic/claude-sonnet-4-5", client_args={"api_key": None})

    with pytest.raises(ModelAuthError, match="ANTHROPIC_API_KEY"):
        await collect(model, ask())


class DecodingError(Exception):
    """Stands for LiteLLM's, which names its cause only in the chain."""


def test_what_is_no_json_is_malformed():
    error = DecodingError("it came apart")
    error.__cause__ = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    found = translated(error)

    assert type(found) is MalformedStreamError
    assert "it came apart" in str(found)


def test_the_kernels_own_errors_stay_what_they_are():
    error = ModelError("mine")

    assert translated(error) is error


def test_an_error_that_nobody_knows_is_not_repeated():
    assert type(translated(KeyError("odd"))) is ModelRequestError
