"""The error of a repeated call whose original came to nothing."""

from __future__ import annotations

from ropewalk import RopewalkError


class IdempotencyAbortedError(RopewalkError):
    """The call that this one repeats was aborted before it had a result."""
