"""Which errors are taken for passing ones."""

from __future__ import annotations

import ssl

import pytest

from ropewalk.errors import (
    ContextWindowOverflowException,
    IncompleteStreamError,
    MalformedStreamError,
    MaxTokensReachedException,
    ModelError,
    ModelThrottledException,
    UnknownModelError,
)
from ropewalk_retry import is_transient


def library_error(module, *names):
    """An error whose classes, base first, have these names and come from that module."""
    cls = Exception
    for name in names:
        cls = type(name, (cls,), {"__module__": module})

    return cls("it failed")


def service_error(code, message="no", status=None):
    error = library_error("botocore.exceptions", "BotoCoreLike", "ClientError")
    error.response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return error


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ModelThrottledException("slower"),
        IncompleteStreamError("cut"),
        MalformedStreamError("odd"),
        ModelError("busy", retryable=True),
        ConnectionError("lost"),
        ConnectionResetError("reset"),
        BrokenPipeError("pipe"),
        TimeoutError("late"),
        library_error("httpx", "TransportError", "TimeoutException", "ReadTimeout"),
        library_error("httpx", "TransportError", "NetworkError", "ConnectError"),
        library_error("httpx", "TransportError", "ProtocolError", "RemoteProtocolError"),
        library_error("httpcore", "NetworkError", "ReadError"),
        library_error("urllib3.exceptions", "HTTPError", "TimeoutError", "ReadTimeoutError"),
        library_error("urllib3.exceptions", "HTTPError", "ProtocolError"),
        library_error("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ReadTimeoutError"),
        library_error("botocore.exceptions", "BotoCoreError", "ConnectionError", "EndpointConnectionError"),
        library_error("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ConnectionClosedError"),
        library_error("requests.exceptions", "RequestException", "ConnectionError"),
        library_error("aiohttp.client_exceptions", "ClientError", "ClientConnectionError", "ServerDisconnectedError"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_may_pass_is_repeated(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ModelError("no"),
        ModelError("said so", retryable=False),
        UnknownModelError("no such model"),
        ContextWindowOverflowException("too long"),
        ContextWindowOverflowException("too long", retryable=True),
        MaxTokensReachedException("cut", retryable=True),
        ValueError("bad"),
        PermissionError("denied"),
        FileNotFoundError("gone"),
        KeyError("x"),
        library_error("httpx", "InvalidURL"),
        library_error("httpx", "TransportError", "UnsupportedProtocol"),
        library_error("mine", "TimeoutException"),
        library_error("mine.urllib3", "ProtocolError"),
        library_error("urllib3.exceptions", "HTTPError", "LocationValueError"),
        library_error("botocore.exceptions", "BotoCoreError", "NoCredentialsError"),
        library_error("botocore.exceptions", "BotoCoreError", "ConnectionError", "SSLError"),
        library_error("requests.exceptions", "RequestException", "ConnectionError", "SSLError"),
        caused(library_error("httpx", "NetworkError", "ConnectError"), ssl.SSLCertVerificationError(1, "expired")),
        caused(ConnectionError("tls"), ssl.SSLCertVerificationError(1, "expired")),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_will_not_pass_is_not_repeated(error):
    assert not is_transient(error)


CODES = ["throttling", "serviceUnavailable", "modelNotReady", "internalServer", "modelTimeout", "modelStreamError"]
SPELLINGS = [f"{code}Exception" for code in CODES]
SPELLINGS += [spelling[0].upper() + spelling[1:] for spelling in SPELLINGS]


@pytest.mark.parametrize("spelling", [*SPELLINGS, "TooManyRequestsException", "SlowDown", "503"])
def test_a_code_of_overload_is_known_in_both_spellings(spelling):
    """Scenario A22."""
    assert is_transient(service_error(spelling))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_class_named_after_such_a_code_is_known_too(spelling):
    """Scenario A22."""
    assert is_transient(library_error("botocore.errorfactory", "ClientError", spelling))


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "accessDeniedException", "ValidationException", "ResourceNotFoundException", ""]
)
def test_other_codes_are_final(code):
    """Scenario A22."""
    assert not is_transient(service_error(code))


def test_the_status_counts_when_the_code_says_nothing():
    assert is_transient(service_error("Unknown", "<html><h1>Bad Gateway</h1></html>", status=502))
    assert not is_transient(service_error("Unknown", "<html><h1>Forbidden</h1></html>", status=403))


def test_an_overflow_is_no_passing_failure_whatever_its_code():
    assert not is_transient(service_error("ModelStreamErrorException", "Input is too long for requested model."))


def test_a_class_of_another_library_with_a_common_name_is_unknown():
    assert not is_transient(library_error("mine", "ModelError"))
    assert not is_transient(library_error("sqlite3", "DatabaseError", "InternalError"))


def test_the_code_counts_and_not_the_class_when_there_are_both():
    error = library_error("botocore.errorfactory", "ThrottlingException")
    error.response = {"Error": {"Code": "AccessDeniedException"}}
    assert not is_transient(error)


@pytest.mark.parametrize("response", [None, "text", {}, {"Error": None}, {"Error": {}}, {"Error": {"Code": 7}}])
def test_a_response_of_another_shape_says_nothing(response):
    error = ValueError("bad")
    error.response = response
    assert not is_transient(error)


def test_an_error_that_holds_the_last_of_many_is_judged_by_that():
    lost = library_error("urllib3.exceptions", "HTTPError", "MaxRetryError")
    lost.reason = library_error("urllib3.exceptions", "HTTPError", "NewConnectionError")
    redirects = library_error("urllib3.exceptions", "HTTPError", "MaxRetryError")
    redirects.reason = library_error("urllib3.exceptions", "HTTPError", "ResponseError")
    assert is_transient(lost)
    assert not is_transient(redirects)


@pytest.mark.parametrize(("said", "expected"), [(True, True), (False, False), ("yes", True), (None, True)])
def test_what_an_error_says_of_itself_is_believed_when_it_is_a_flag(said, expected):
    error = ConnectionError("lost")
    error.retryable = said
    assert is_transient(error) is expected


def test_a_connection_that_was_cut_while_its_encryption_began_may_come_back():
    cut = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
    assert is_transient(cut)
    assert is_transient(caused(library_error("requests.exceptions", "ConnectionError", "SSLError"), cut))
    assert not is_transient(
        caused(library_error("requests.exceptions", "ConnectionError", "SSLError"), ssl.SSLError(1, "x"))
    )


def test_a_ring_of_reasons_comes_to_an_end():
    error = library_error("urllib3.exceptions", "HTTPError", "MaxRetryError")
    error.reason = error
    assert not is_transient(error)


def test_a_ring_of_causes_comes_to_an_end():
    first, second = ConnectionError("a"), ConnectionError("b")
    first.__cause__, second.__cause__ = second, first
    assert is_transient(first)
