"""LiteLLM's exceptions as the kernel's, by the tables that all providers share."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk.errors import IncompleteStreamError, MalformedStreamError, ModelError
from ropewalk.kits.model_errors import classify, model_error, retry_after_seconds

_PROVIDER: Final = "litellm"
_PREFIX: Final = re.compile(r"^(litellm\.)?(\w+(Error|Exception)|Timeout|Timeout Error): ")
_CUT: Final = re.compile(r"before a finish_reason was received", re.IGNORECASE)
_NO_ANSWER: Final = frozenset({"APIConnectionError"})  # its status is made up
_DEEP: Final = 8


def translated(error: Exception, *, begun: bool = False) -> ModelError:
    """The error to raise for one of LiteLLM's.

    Args:
        error: What it raised.
        begun: Whether something of an answer had come already.
    """
    if isinstance(error, ModelError):
        return _noted(error) if error.retryable and error.failure is None else error

    told = _told(error)
    message = _message(told)
    if any(isinstance(cause, UnicodeDecodeError | ValueError) and _is_decoding(cause) for cause in _causes(error)):
        return _noted(
            MalformedStreamError(f"{_PROVIDER}: {message}: the server sends what is no text or no JSON; check it")
        )

    name = type(told).__name__
    own = next((code for cause in _causes(told) if (code := _code(cause))), None)
    if _CUT.search(message) or (begun and own is None and name in _NO_ANSWER):
        return _noted(IncompleteStreamError(f"{_PROVIDER}: {message}: the answer was cut; try again later"))

    reason = _reason(told)
    if reason is not None and str(reason) not in message:
        message = f"{message.rstrip('. ')}: {reason}"  # "Connection error" alone helps nobody

    if reason is not None and _is_wrong_place(reason):
        where = f"{message} (check api_base, and the certificates and proxies on the way)"
        return model_error("bad_request", where, provider=_PROVIDER, code=type(reason).__name__)

    status = None if name in _NO_ANSWER else _status(told)
    code = own or name
    failure = classify(_PROVIDER, code=code, status=status, text=message)
    return model_error(failure, message, provider=_PROVIDER, code=code, status=status, retry_after=_retry_after(told))


def _noted(error: ModelError) -> ModelError:
    """The error of a stream that came apart, with what the others have."""
    error.provider, error.failure = _PROVIDER, "transient"
    return error


def _told(error: Exception) -> Exception:
    """The provider's own error: one that came in the middle of a stream is wrapped."""
    for _ in range(_DEEP):
        inner = getattr(error, "original_exception", None)
        if type(error).__name__ != "MidStreamFallbackError" or not isinstance(inner, Exception):
            break

        error = inner

    return error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_DEEP):
        if error is None:
            return

        yield error
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__


def _reason(error: Exception) -> OSError | None:
    """Why there was no connection, as the system says it, below what three libraries have made of it."""
    kinds = (ssl.SSLError, socket.gaierror, ConnectionError)
    return next((cause for cause in reversed([*_causes(error)]) if isinstance(cause, kinds)), None)


def _is_wrong_place(reason: OSError) -> bool:
    """Whether waiting does not help: there is no such host, or it is not who it should be."""
    if isinstance(reason, socket.gaierror):
        return reason.errno == socket.EAI_NONAME

    return isinstance(reason, ssl.SSLError) and not isinstance(reason, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def _is_decoding(cause: BaseException) -> bool:
    return isinstance(cause, UnicodeDecodeError) or type(cause).__name__ == "JSONDecodeError"


def _message(error: Exception) -> str:
    """What the provider said, without the names that are stacked in front of it."""
    message = str(getattr(error, "message", None) or error)
    for _ in range(_DEEP):
        shorter = _PREFIX.sub("", message)
        if shorter == message:
            break

        message = shorter

    body = getattr(error, "body", None)
    return f"{message}: {body}" if isinstance(body, str) and body and body not in message else message


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    try:
        return int(status) if status is not None else None
    except (TypeError, ValueError):
        return None


def _code(error: BaseException) -> str | None:
    """The provider's own code, which LiteLLM's exception may have lost and that of the client below it has."""
    body = getattr(error, "body", None)
    found: Any = body.get("code") if isinstance(body, Mapping) else None
    found = found or getattr(error, "code", None)
    return found if isinstance(found, str) and found and not found.isdigit() else None


def _retry_after(error: Exception) -> float | None:
    sources = (
        getattr(getattr(error, "response", None), "headers", None),
        getattr(error, "litellm_response_headers", None),
    )
    for headers in sources:
        if isinstance(headers, Mapping):
            seconds = retry_after_seconds({str(k): str(v) for k, v in headers.items()})
            if seconds is not None:
                return seconds

    return None
