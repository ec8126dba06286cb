"""Whether calls on one agent may overlap."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, final

from ropewalk import hookimpl
from ropewalk.kits.calls.invocation import REENTRANT


class ConcurrentInvocationMode(StrEnum):
    """What a second call on a busy agent does."""

    THROW = "throw"
    """It is refused with ConcurrencyException, unless it repeats the call under way."""

    UNSAFE_REENTRANT = "unsafe_reentrant"
    """It runs all the same, on a branch of the history; idempotency tokens are ignored."""


METHOD = "concurrent_invocation_mode"


@final
class ReentrantPlugin:
    """Lets calls on one agent overlap. Takes the place of the plugin that refuses them."""

    name = "concurrency"

    @hookimpl
    async def admit(self) -> Any:
        """Lets every call in."""
        return REENTRANT

    @hookimpl
    def provide_method(self, name: str) -> Callable[[], ConcurrentInvocationMode] | None:
        """Tells the mode."""
        return _reentrant if name == METHOD else None


def _reentrant() -> ConcurrentInvocationMode:
    return ConcurrentInvocationMode.UNSAFE_REENTRANT
