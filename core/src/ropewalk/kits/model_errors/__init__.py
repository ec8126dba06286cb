"""What went wrong with a model call, in one vocabulary for all providers.

A model plugin hands what its client reported to `classify` and raises what `model_error` makes of it.
"""

from __future__ import annotations

from ropewalk.kits.model_errors.classify import classify
from ropewalk.kits.model_errors.errors import (
    ContentFilteredError,
    ModelAuthError,
    ModelRequestError,
    ModelUnavailableError,
)
from ropewalk.kits.model_errors.making import model_error
from ropewalk.kits.model_errors.tables import FailureClass
from ropewalk.kits.model_errors.waiting import retry_after_seconds

__all__ = [
    "ContentFilteredError",
    "FailureClass",
    "ModelAuthError",
    "ModelRequestError",
    "ModelUnavailableError",
    "classify",
    "model_error",
    "retry_after_seconds",
]
