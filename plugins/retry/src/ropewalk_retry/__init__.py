"""Repeats failed model calls: when, how often, and after how long."""

from __future__ import annotations

from ropewalk_retry.plugin import ModelRetryStrategy, RetryPlugin
from ropewalk_retry.transient import is_transient

__all__ = ["ModelRetryStrategy", "RetryPlugin", "is_transient"]
