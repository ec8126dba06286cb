"""What goes wrong with handlers."""

from __future__ import annotations

from ropewalk.errors import RopewalkError


class InterventionError(RopewalkError):
    """A handler did something that it must not."""


class HandlerAnswerError(InterventionError, TypeError):
    """A handler answered something that is no action."""


class HandlerTimeoutError(InterventionError, TimeoutError):
    """A handler has not answered within its time limit."""


class GuidanceLimitError(InterventionError):
    """Handlers have sent the model back too often in one turn."""
