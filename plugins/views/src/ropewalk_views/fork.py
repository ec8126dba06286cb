"""`ropewalk fork`: a new session from the beginning of another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import click

from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey, LogStore, SessionException
from ropewalk.kits.sessions.opening import opened
from ropewalk_views.locating import agent_option, log_at, say, session_and, shown, state_of, store_option
from ropewalk_views.rendering import counted, standing


@click.command()
@click.argument("source", metavar="SESSION@N")
@click.argument("new", required=False)
@store_option
@click.option("--to-store", metavar="STORE", help="Where the new session is kept, if not in the same store.")
@agent_option
def fork(source: str, new: str | None, store: str | None, to_store: str | None, agent_id: str | None) -> None:
    """Makes the session NEW from the first N records of SESSION; from all of them without @N.

    The records are copied as they are. A run that has not ended at N is broken off in NEW, as after a crash: `ropewalk
    resume NEW` goes on with it, and the next prompt closes it. Nothing happens to SESSION.
    """
    if new is not None and not new.strip():
        raise click.BadParameter("give the new session a name that is not blank, or leave it out", param_hint="NEW")

    with opened(store) as here, opened(to_store if to_store is not None else store) as there:
        log = log_at(here, source, agent_id)
        records = without_a_bare_start(log.records)
        if not records:
            raise click.UsageError(f"{source}: nothing was said yet at that record: name a later one")

        state = state_of(log.key, records)
        key = LogKey(new if new is not None else _free_name(here, there, source), log.key.agent_id)
        if there.logs(key.session_id):
            raise SessionException(f"there is a session {key.session_id!r} already: name another, or delete it first")

        asyncio.run(_written(there, key, records))

    known = counted(len(records), "record"), counted(len(state.messages), "message"), standing(state)
    say(f"{shown(key.session_id)}: {', '.join(known)}")


def without_a_bare_start(records: Sequence[Record]) -> Sequence[Record]:
    """The records without a run at their end of which nothing is there but that it has begun."""
    end = len(records)
    while end and records[end - 1].kind in ("run_started", "state_changed", "once") and not records[end - 1].path:
        end -= 1

    return records[:end] if any(each.kind == "run_started" for each in records[end:]) else records


def _free_name(here: LogStore, there: LogStore, source: str) -> str:
    session_id, place = session_and(here, source, "@")
    name = f"{session_id}-fork" if place is None else f"{session_id}-at-{place}"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if not there.logs(each))


async def _written(store: LogStore, key: LogKey, records: Sequence[Record]) -> None:
    lease = await store.lease(key)
    try:
        await store.append(key, records, 0)
    finally:
        waiting = lease.release()
        if waiting is not None:
            await waiting
