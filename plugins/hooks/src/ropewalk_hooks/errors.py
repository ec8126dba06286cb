"""The error of callbacks."""

from __future__ import annotations

from ropewalk.errors import RopewalkError


class HookError(RopewalkError, ValueError):
    """A callback cannot be registered, or has written to an event what its field does not take."""
