"""What goes wrong with sessions. Each error names the session and where it is kept."""

from __future__ import annotations

from ropewalk.errors import RopewalkError


class SessionException(RopewalkError):  # noqa: N818 - the public name
    """A session cannot be opened, read or written."""


class SessionConflictError(SessionException):
    """Another writer has the session, or has written to it since this agent read it. Nothing of this run is in it."""


class SessionDamagedError(SessionException):
    """A session's log cannot be read, not even its beginning. It is left as it is."""
