"""How a command ends: exit codes, and errors as a person reads them."""

from __future__ import annotations

import errno
from enum import IntEnum

import click

from ropewalk.errors import RopewalkError
from ropewalk.kits.terminal import first_line, harmless
from ropewalk_cli.saved import PAUSES


class Exit(IntEnum):
    """The program's exit codes. 2, for wrong usage, is click's own."""

    DONE = 0
    ERROR = 1
    STOPPED_EARLY = 3
    PAUSED = 4
    CANCELLED = 130


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
COMPLETE = frozenset({"end_turn", "stop_sequence"})
"""Stop reasons of an answer that is all there."""


def exit_of(stop_reason: str, *, kept: bool = False) -> Exit:
    """The exit code for a run that ended with a result.

    Args:
        stop_reason: The result's.
        kept: Whether a run that waits is kept, so that it can go on.
    """
    if stop_reason == "cancelled":
        return Exit.CANCELLED

    if kept and stop_reason in PAUSES:
        return Exit.PAUSED

    return Exit.DONE if stop_reason in COMPLETE else Exit.STOPPED_EARLY


def report(error: BaseException) -> None:
    """Writes an error to standard error: its type, its text, what is known about its origin, what to do.

    What providers and tools have said may be in it, and must not steer the terminal.
    """
    parts: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if len(parts) == 1:
        parts[0].add_note(str(error))
        return report(parts[0])

    text = str(error)
    if type(error) is OSError and error.filename is None and error.errno in _FULL:
        text = f"the output cannot be written: {error.strerror}"

    click.secho(harmless(f"Error: {type(error).__name__}: {text}"), fg="red", err=True)
    cause = error.__cause__
    if cause is not None and not _is_told(cause, str(error)):
        click.echo(f"  caused by {type(cause).__name__}: {first_line(str(cause))}", err=True)

    for part in parts:
        click.echo(harmless(f"  {type(part).__name__}: {part}"), err=True)

    for note in getattr(error, "__notes__", ()):
        click.echo(harmless(f"  {note}"), err=True)

    if not isinstance(error, RopewalkError):
        click.echo("  --debug shows where it comes from", err=True)

    return None


def _is_told(cause: BaseException, text: str) -> bool:
    """Whether the text of an error says already what its cause says: all of it, or each of its findings."""
    known = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return known in text or (hasattr(cause, "errors") and isinstance(cause, ValueError))  # pydantic's
