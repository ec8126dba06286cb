"""Which errors may go away by themselves. Libraries are known by the names of their classes; none is imported."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk.errors import ContextWindowOverflowException, MaxTokensReachedException
from ropewalk.kits.model_errors import classify
from ropewalk.kits.model_errors.classify import bare_code
from ropewalk.kits.model_errors.tables import OVERLOADS, THROTTLES

CONNECTION_ERRORS: Final[Mapping[str, frozenset[str]]] = {
    "aiohttp": frozenset({"ClientConnectionError", "ClientPayloadError"}),
    "botocore": frozenset({"ConnectionError", "HTTPClientError", "IncompleteReadError", "ResponseStreamingError"}),
    "httpcore": frozenset({"NetworkError", "ProxyError", "RemoteProtocolError", "TimeoutException"}),
    "httpx": frozenset({"NetworkError", "ProxyError", "RemoteProtocolError", "TimeoutException"}),
    "requests": frozenset({"ChunkedEncodingError", "ConnectionError", "Timeout"}),
    "urllib3": frozenset({"NewConnectionError", "ProtocolError", "TimeoutError"}),
}
"""Package to the base classes of its errors in which no answer, or only a part of one, has come back."""

NOT_CONNECTION_ERRORS: Final = frozenset({"ClientSSLError", "SSLError"})
"""Subclasses of those that a repetition does not help: the other side is not who it should be."""

OVERLOAD_CODES: Final = frozenset(
    bare_code(code)
    for row in (*THROTTLES, *OVERLOADS)
    if row.provider in ("*", "bedrock")
    for code in row.codes.split()
)
"""Names of overload that generated clients name their error classes after, without case and ending."""

_CHAIN: Final = 8


def is_transient(error: BaseException) -> bool:
    """Whether the same model call may succeed later.

    An error that says so itself (`retryable`, as `ModelError` has it) is believed. Any other is transient if it is a
    timeout or a failed connection, of Python or of a known HTTP client, or if it is, or carries, one of the codes of
    overload that services answer with. An overflow of the model's window never is.
    """
    if isinstance(error, ContextWindowOverflowException | MaxTokensReachedException):
        return False

    said = getattr(error, "retryable", None)
    if isinstance(said, bool):
        return said

    return _lost_connection(error) or _names_overload(error)


def _lost_connection(error: BaseException, within: int = _CHAIN) -> bool:
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _with_causes(error)):
        return False

    if isinstance(error, ConnectionError | TimeoutError) or _was_cut(error):
        return True

    reason = getattr(error, "reason", None)  # urllib3's own retries end in an error that holds the last one
    if isinstance(reason, Exception) and within:
        return _lost_connection(reason, within - 1)

    classes = type(error).__mro__
    if any(cls.__name__ in NOT_CONNECTION_ERRORS for cls in classes):
        return False

    return any(cls.__name__ in CONNECTION_ERRORS.get(cls.__module__.partition(".")[0], ()) for cls in classes)


def _was_cut(error: BaseException) -> bool:
    """Whether a connection was lost while its encryption began, which clients report like a wrong certificate."""
    return any(isinstance(each, ssl.SSLEOFError) for each in _with_causes(error))


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, up to a bound: a chain of causes may be a ring."""
    each: BaseException | None = error
    for _ in range(_CHAIN):
        if each is None:
            return

        yield each
        each = each.__cause__ or each.__context__


def _names_overload(error: BaseException) -> bool:
    """By the code of the response, or by the class: generated clients name their classes after the codes."""
    reported = _reported(error)
    if reported is not None:
        return classify("bedrock", **reported) in {"throttle", "transient"}

    return any(bare_code(cls.__name__) in OVERLOAD_CODES for cls in type(error).__mro__)


def _reported(error: Any) -> dict[str, Any] | None:
    """Code, status and text of the response, as botocore's errors carry them."""
    response = getattr(error, "response", None)
    details = response.get("Error") if isinstance(response, Mapping) else None
    if not isinstance(response, Mapping) or not isinstance(details, Mapping):
        return None

    code = details.get("Code")
    if not isinstance(code, str):
        return None

    facts = response.get("ResponseMetadata")
    status = facts.get("HTTPStatusCode") if isinstance(facts, Mapping) else None
    text = details.get("Message")
    return {
        "code": code,
        "status": status if isinstance(status, int) else None,
        "text": text if isinstance(text, str) else "",
    }
