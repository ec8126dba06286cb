"""What a second call on a busy agent does, and calls that are repeats of one another."""

from __future__ import annotations

from ropewalk_concurrency.errors import IdempotencyAbortedError
from ropewalk_concurrency.mode import ConcurrentInvocationMode, ReentrantPlugin
from ropewalk_concurrency.plugin import ConcurrencyPlugin

__all__ = ["ConcurrencyPlugin", "ConcurrentInvocationMode", "IdempotencyAbortedError", "ReentrantPlugin"]
