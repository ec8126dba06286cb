"""Which failure is of which kind."""

from __future__ import annotations

import pytest

from ropewalk.errors import (
    ContextWindowOverflowException,
    IncompleteStreamError,
    MaxTokensReachedException,
    ModelError,
    ModelThrottledException,
    UnknownModelError,
)
from ropewalk.kits.model_errors import model_error
from ropewalk_fallback.kinds import DEFAULT_ON, WORDS, checked_on, is_among, kind_of


@pytest.mark.parametrize("kind", WORDS)
def test_an_error_of_the_kit_says_its_kind(kind):
    assert kind_of(model_error(kind, "no", provider="p")) == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelThrottledException("x"), "throttle"),
        (ContextWindowOverflowException("x"), "overflow"),
        (UnknownModelError("x"), "not_found"),
        (IncompleteStreamError("x"), "transient"),
        (ModelError("x", retryable=True), "transient"),
        (ConnectionResetError("x"), "transient"),
        (TimeoutError("x"), "transient"),
        (ModelError("x"), None),
        (MaxTokensReachedException("x"), None),
        (ValueError("x"), None),
        (PermissionError("x"), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_any_other_error_is_known_by_its_class(error, kind):
    assert kind_of(error) == kind
    assert is_among(error, DEFAULT_ON) is (kind in DEFAULT_ON)


def test_classes_and_words_may_be_mixed():
    on = checked_on([ValueError, "auth"])
    assert is_among(ValueError("x"), on)
    assert is_among(model_error("auth", "x", provider="p"), on)
    assert not is_among(ModelThrottledException("x"), on)


def test_one_word_or_class_needs_no_list():
    assert checked_on("auth") == ("auth",)
    assert checked_on(ValueError) == (ValueError,)


@pytest.mark.parametrize("wrong", ["throttled", 7, None, int, KeyboardInterrupt, ValueError("an instance")])
def test_what_is_no_kind_is_refused_and_the_kinds_are_told(wrong):
    with pytest.raises(ValueError, match="one of overflow, throttle"):
        checked_on([wrong])
