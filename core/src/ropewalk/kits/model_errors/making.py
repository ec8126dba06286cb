"""One error for each kind of failure, with the provider's own words and what to do."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Final

from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException, UnknownModelError
from ropewalk.kits.json_values import clean_text
from ropewalk.kits.model_errors.errors import (
    ContentFilteredError,
    ModelAuthError,
    ModelRequestError,
    ModelUnavailableError,
)
from ropewalk.kits.model_errors.tables import FailureClass

CLASSES: Final[Mapping[FailureClass, type[ModelError]]] = {
    "overflow": ContextWindowOverflowException,
    "throttle": ModelThrottledException,
    "transient": ModelUnavailableError,
    "auth": ModelAuthError,
    "content_filter": ContentFilteredError,
    "not_found": UnknownModelError,
    "bad_request": ModelRequestError,
}
"""Kind of failure to what it is raised as."""

_TO_DO: Final[Mapping[FailureClass, str]] = {
    "overflow": "shorten the conversation or the tools' results, or use a model with a larger window",
    "throttle": "send fewer requests, give the retry strategy more attempts, or ask the provider for a higher limit",
    "transient": "try again later; if it stays, check the endpoint, the region and the network",
    "auth": "check the credentials, what they permit, and the account's quota",
    "content_filter": "change what is asked for, or the filter's or guardrail's settings",
    "not_found": "check the model's id, and that it exists in this region and at this endpoint",
    "bad_request": "change what the message names",
}

_LONGEST: Final = 2_000
# What is not closed goes on to the end, and a tag ends before the next one: so no text is searched through twice.
_MARKUP: Final = re.compile(
    r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_HTML: Final = re.compile(r"<(!doctype|html|body|head)\b", re.IGNORECASE)


def model_error(
    failure: FailureClass,
    message: str,
    *,
    provider: str,
    code: str | None = None,
    status: int | None = None,
    retry_after: float | None = None,
) -> ModelError:
    """The error to raise for a failure that a provider reported.

    Args:
        failure: What `classify` made of it.
        message: The provider's own message; of an HTML page, its text is shown. Cut at 2,000 characters.
        provider: Who reported it.
        code: The provider's code.
        status: The HTTP status.
        retry_after: Seconds that the provider asks to wait.
    """
    said = _readable(message) or "it gave no message"
    facts = [str(fact) for fact in (code, status) if fact is not None and str(fact) not in said]
    who = f"{provider} ({', '.join(facts)})" if facts else provider
    error = CLASSES[failure](f"{who}: {said.rstrip('.:; ')}: {_TO_DO[failure]}", retry_after=retry_after)
    error.provider = provider
    error.code = code
    error.status = status
    error.failure = failure
    return error


def _readable(message: str) -> str:
    text = message[: 50 * _LONGEST]
    if _HTML.search(text):
        text = " ".join(html.unescape(_MARKUP.sub(" ", text)).split())

    text = clean_text(text).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
