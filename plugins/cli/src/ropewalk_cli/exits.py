"""How a command ends: exit codes, and errors as a person reads them."""

from __future__ import annotations

from enum import IntEnum

import click

from ropewalk.errors import RopewalkError
from ropewalk_cli.saved import PAUSES


class Exit(IntEnum):
    """The program's exit codes. 2, for wrong usage, is click's own."""

    DONE = 0
    ERROR = 1
    STOPPED_EARLY = 3
    PAUSED = 4
    CANCELLED = 130


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
    """Writes an error to standard error: its type, its text, what is known about its origin, what to do."""
    click.secho(f"Error: {type(error).__name__}: {error}", fg="red", err=True)
    cause = error.__cause__
    if cause is not None and str(cause) not in str(error):
        click.echo(f"  caused by {type(cause).__name__}: {cause}", err=True)

    for part in getattr(error, "exceptions", ()):
        click.echo(f"  {type(part).__name__}: {part}", err=True)

    for note in getattr(error, "__notes__", ()):
        click.echo(f"  {note}", err=True)

    if not isinstance(error, RopewalkError):
        click.echo("  --debug shows where it comes from", err=True)
