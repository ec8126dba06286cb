"""Which failures make an agent go on with the next model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, get_args

from ropewalk.errors import ModelError
from ropewalk.kits.model_errors import FailureClass
from ropewalk.kits.model_errors.making import CLASSES

On: TypeAlias = tuple[type[Exception] | FailureClass, ...]
"""Kinds of failures (`"throttle"`, `"auth"` ...) and classes of errors."""

WORDS: Final[tuple[FailureClass, ...]] = get_args(FailureClass)
DEFAULT_ON: Final[On] = ("throttle", "transient", "overflow")
"""What may pass by itself, and what a larger model can hold. Wrong credentials and wrong requests are told instead."""


def checked_on(on: Iterable[Any]) -> On:
    """The kinds and classes as given.

    Raises:
        ValueError: One is neither.
    """
    if isinstance(on, str | type):
        on = (on,)

    given = tuple(on)
    for each in given:
        if each not in WORDS and not (isinstance(each, type) and issubclass(each, Exception)):
            raise ValueError(
                f"fallback: on={each!r} is no kind of failure: give an error class or one of {', '.join(WORDS)}"
            )

    return given


def kind_of(error: Exception) -> FailureClass | None:
    """The kind of a failure, by what the error says or by its class; None when neither is known."""
    said = getattr(error, "failure", None)
    if said in WORDS:
        return said  # type: ignore[no-any-return]

    for kind, cls in CLASSES.items():
        if isinstance(error, cls):
            return kind

    passing = isinstance(error, ConnectionError | TimeoutError) or (isinstance(error, ModelError) and error.retryable)
    return "transient" if passing else None


def is_among(error: Exception, on: On) -> bool:
    """Whether a failure is one of those that are waited for."""
    kind = kind_of(error)
    return any(isinstance(error, each) if isinstance(each, type) else each == kind for each in on)
