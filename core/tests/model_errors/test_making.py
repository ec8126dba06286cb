from __future__ import annotations

import pickle
from typing import get_args

import pytest

from ropewalk.errors import (
    ContextWindowOverflowException,
    ModelError,
    ModelThrottledException,
    RopewalkError,
    UnknownModelError,
)
from ropewalk.kits.model_errors import (
    ContentFilteredError,
    FailureClass,
    ModelAuthError,
    ModelRequestError,
    ModelUnavailableError,
    model_error,
)

KINDS = [
    ("overflow", ContextWindowOverflowException, False),
    ("throttle", ModelThrottledException, True),
    ("transient", ModelUnavailableError, True),
    ("auth", ModelAuthError, False),
    ("content_filter", ContentFilteredError, False),
    ("not_found", UnknownModelError, False),
    ("bad_request", ModelRequestError, False),
]


@pytest.mark.parametrize(("failure", "kind", "retryable"), KINDS)
def test_each_kind_is_an_error_that_knows_what_was_reported(failure, kind, retryable):
    error = model_error(failure, "Their words.", provider="bedrock", code="TheirCode", status=418, retry_after=2.5)
    assert type(error) is kind
    assert isinstance(error, ModelError)
    assert isinstance(error, RopewalkError)
    assert error.retryable is retryable
    assert (error.provider, error.code, error.status, error.failure) == ("bedrock", "TheirCode", 418, failure)
    assert error.retry_after == 2.5


@pytest.mark.parametrize(("failure", "kind", "retryable"), KINDS)
def test_the_message_is_theirs_and_ends_in_what_to_do(failure, kind, retryable):
    said, colon, to_do = str(model_error(failure, "Their words.", provider="bedrock", code="C", status=418)).rpartition(
        ": "
    )
    assert said + colon == "bedrock (C, 418): Their words: "
    assert to_do.split()[0] in {"shorten", "send", "try", "check", "change"}


def test_every_kind_of_failure_is_tested_here():
    assert {kind for kind, _, _ in KINDS} == set(get_args(FailureClass))


def test_what_the_message_names_is_not_said_twice():
    message = "An error occurred (ThrottlingException) when calling the ConverseStream operation: Too many tokens"
    error = model_error("throttle", message, provider="bedrock", code="ThrottlingException", status=429)
    assert str(error).startswith(f"bedrock (429): {message}: ")
    assert str(error).count("ThrottlingException") == 1


def test_of_an_html_page_its_text_is_shown():
    page = (
        "Error code: 502 - <html><head><title>502 Bad Gateway</title><style>p {color: red}</style></head>"
        "<body><!-- id 7 --><center>cloud &amp; edge</center></body></html>"
    )
    error = model_error("transient", page, provider="litellm", status=502)
    assert str(error).startswith("litellm: Error code: 502 - 502 Bad Gateway cloud & edge: ")


@pytest.mark.parametrize("opening", ["<!--", "<script>", "<style "])
def test_what_a_page_never_closes_is_dropped_and_each_part_of_it_is_read_once(opening):
    page = "<html>the gate is down " + opening * (100_000 // len(opening))
    error = model_error("transient", page, provider="litellm")
    assert str(error).startswith("litellm: the gate is down: ")


def test_a_page_of_nothing_but_opening_brackets_is_cut_like_any_other():
    assert len(str(model_error("transient", "<html>" + "<" * 100_000, provider="litellm"))) < 3_000


def test_text_with_angle_brackets_that_is_no_page_stays():
    assert "203470 tokens > 200000, a < b" in str(
        model_error("overflow", "203470 tokens > 200000, a < b", provider="bedrock")
    )


def test_a_giant_message_is_cut():
    assert len(str(model_error("bad_request", "x" * 1_000_000, provider="bedrock"))) < 3_000


@pytest.mark.parametrize("message", ["", "  ", "<html></html>"])
def test_no_message_is_said_so(message):
    assert "gave no message" in str(model_error("transient", message, provider="bedrock"))


def test_half_a_character_becomes_a_whole_one():
    assert "bad \ufffd end" in str(model_error("bad_request", "bad \ud83d end", provider="bedrock"))


def test_an_error_survives_pickling():
    error = model_error("auth", "Their words", provider="bedrock", code="C", status=403)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is ModelAuthError
    assert str(copy) == str(error)
    assert (copy.provider, copy.code, copy.status, copy.failure) == ("bedrock", "C", 403, "auth")


def test_a_model_error_of_nobody_knows_nothing():
    error = ModelError("x")
    assert (error.provider, error.code, error.status, error.failure) == (None, None, None, None)
