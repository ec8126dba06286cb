"""Why a paused run cannot go on as asked. A refused resume has changed nothing."""

from __future__ import annotations

from ropewalk.errors import InvalidPromptError, RopewalkError


class ResumeError(RopewalkError):
    """A paused run cannot go on with what it was given; it still waits."""


class ResumeTypeError(ResumeError, TypeError):
    """The prompt has not the form that the pause asks for."""


class ResumeValueError(ResumeError, ValueError):
    """The prompt has the right form, and says something that cannot be meant."""


class NothingToResumeError(ResumeError, InvalidPromptError):
    """The prompt answers a pause, and the agent has none."""


class UnknownInterruptError(ResumeError, KeyError):
    """An answer is for a question that is not open: unknown, of another run, or answered before."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class CheckpointException(ResumeError, ValueError):  # noqa: N818 - the public name
    """A checkpoint is malformed, of another version, or not the one at which the run waits."""
