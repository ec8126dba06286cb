"""What a failed model call is raised as, where `ropewalk.errors` has no class for it."""

from __future__ import annotations

from ropewalk.errors import ModelError


class ModelUnavailableError(ModelError):
    """The provider could not answer this time: overloaded, restarting, timed out, or the connection was lost."""

    retryable = True


class ModelAuthError(ModelError):
    """The provider does not let this account in: credentials, permission, or a quota that is used up."""


class ContentFilteredError(ModelError):
    """The provider refused the request, or kept its answer back, because of what is in it."""


class ModelRequestError(ModelError, ValueError):
    """The provider refused the request as wrong; the same request will be refused again."""
