"""`ropewalk trace`: what happened in a session, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

import click

from ropewalk.kits.sessions.opening import opened
from ropewalk_views.locating import agent_option, as_json_text, json_option, log_of, say, session_and, store_option
from ropewalk_views.timeline import Event, RunTrace, runs_of

_SHOWN: Final = 8
"""So many characters of a tool-use id tell sub-agents apart that run at the same time."""


@click.command()
@click.argument("session", metavar="SESSION[:RUN]")
@store_option
@agent_option
@json_option
def trace(session: str, store: str | None, agent_id: str | None, as_json: bool) -> None:
    """Shows a session as a timeline: model calls, tools, messages, and which plugin changed what.

    RUN is the number of a run, from 1, -1 for the last one, or the beginning of its id. The first column numbers
    records, for SESSION@N; the second has the seconds since the run began. In brackets: how long it took, and tokens.
    """
    with opened(store) as kept:
        session_id, wanted = session_and(kept, session, ":")
        log = log_of(kept, session_id, agent_id, session)

    runs = runs_of(log.records)
    shown = runs if wanted is None else [_chosen(runs, wanted, session_id)]
    if as_json:
        click.echo(as_json_text([asdict(run) for run in shown]))
        return

    for line in _lines(shown):
        say(line)


def _chosen(runs: Sequence[RunTrace], wanted: str, session_id: str) -> RunTrace:
    """The run that a number or the beginning of an id names.

    Raises:
        click.UsageError: There is none, or several.
    """
    begun = [run for run in runs if run.number]
    found = [run for run in begun if wanted and run.run.startswith(wanted)]
    if wanted.lstrip("-").isdecimal() and wanted.isascii():
        number = int(wanted[:18])
        found = [run for run in begun if run.number == (number if number > 0 else len(begun) + 1 + number)]

    if len(found) != 1:
        problem = f"{len(found)} runs of session {session_id!r} begin so" if found else "there is no such run"
        known = ", ".join(f"{run.number} ({run.run})" for run in begun[-10:]) or "none"
        raise click.UsageError(f"{session_id}:{wanted}: {problem}; its last runs are {known}")

    return found[0]


def _lines(runs: Sequence[RunTrace]) -> Iterator[str]:
    for place, run in enumerate(runs):
        if place:
            yield ""

        started = datetime.fromtimestamp(run.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        head = f"run {run.number}  {run.run}  {started}" if run.number else f"before  {started}"
        yield "  ".join(filter(None, (head, _length(run.seconds), run.stopped, _tokens(run.usage))))
        several = len({event.path for event in run.events if event.path}) > 1
        for event in run.events:
            yield _line(event, f"[{event.path[-1][-_SHOWN:]}] " if several and event.path else "")


def _line(event: Event, whose: str) -> str:
    facts = [] if event.took is None else [_length(event.took)]
    facts += filter(None, [_tokens(event.usage or {})])
    known = f"  [{', '.join(facts)}]" if facts else ""
    return f"{event.record:>6}  {f'+{event.at:.3f}':>9}  {'  ' * len(event.path)}{whose}{event.text}{known}"


def _length(seconds: float) -> str:
    return f"{seconds:.3f} s"


def _tokens(usage: Mapping[str, int]) -> str:
    if not usage:
        return ""

    return f"{usage.get('inputTokens', 0)} tokens in, {usage.get('outputTokens', 0)} out"
