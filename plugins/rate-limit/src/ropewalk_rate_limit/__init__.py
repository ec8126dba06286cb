"""Requests and tokens a minute, for all agents of a process that call a model."""

from __future__ import annotations

from ropewalk_rate_limit.errors import RequestTooLargeError
from ropewalk_rate_limit.plugin import RateLimitPlugin
from ropewalk_rate_limit.rate import Rate

__all__ = ["Rate", "RateLimitPlugin", "RequestTooLargeError"]
