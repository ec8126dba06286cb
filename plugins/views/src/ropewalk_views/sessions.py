"""`ropewalk sessions`: what is kept, whether it can be read, how big it is; and making it smaller."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click

from ropewalk.kits.sessions import LogInfo, LogKey, LogStore, SessionException
from ropewalk.kits.sessions.opening import opened
from ropewalk.kits.sessions.retention import Retention, compacted
from ropewalk.kits.terminal import table
from ropewalk_views.locating import (
    DEFAULT_AGENT,
    agent_option,
    as_json_text,
    json_option,
    log_at,
    named,
    say,
    shown,
    state_of,
    store_option,
    unknown,
    warn,
)
from ropewalk_views.rendering import counted, plain, standing, whole


@click.group()
def sessions() -> None:
    """Lists, shows, checks, compacts and deletes sessions."""


@sessions.command(name="list")
@store_option
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """Lists the sessions with the agents in each, their size and when they were last written."""
    with opened(store) as kept:
        found = kept.logs()
        where = repr(kept)

    if as_json:
        click.echo(as_json_text([_plain(info) for info in found]))
    elif not found:
        click.echo(f"There are no sessions in {where}", err=True)
    else:
        rows = [(shown(i.key.session_id), shown(i.key.agent_id), _bytes(i.size), _date(i.changed)) for i in found]
        for line in table(("SESSION", "AGENT", "SIZE", "CHANGED"), rows):
            say(line)

        count = len({i.key.session_id for i in found})
        say(f"\n{counted(count, 'session')}, {_bytes(sum(i.size for i in found))}")


@sessions.command()
@click.argument("session", metavar="SESSION[@N]")
@store_option
@agent_option
@json_option
def show(session: str, store: str | None, agent_id: str | None, as_json: bool) -> None:
    """Shows a conversation: its messages, state, plugins' state and what it waits for; after N records, with @N."""
    with opened(store) as kept:
        log = log_at(kept, session, agent_id)

    state = log.state()
    facts = {
        "session": log.key.session_id, "agent": log.key.agent_id, "records": len(log.records), "runs": state.runs,
        "standing": standing(state),
    }  # fmt: skip
    if as_json:
        told = {**facts, "messages": state.messages, "state": state.state, "plugins": state.cells}
        click.echo(as_json_text(told))
        return

    known = counted(len(log.records), "record"), counted(state.runs, "run"), standing(state)
    say(f"{named(log.key)}: {', '.join(known)}")
    for message in state.messages:
        for line in whole(message):
            say(line)

    for key, value in state.state.items():
        say(f"state: {key} = {plain(value)}")

    for name, cell in state.cells.items():
        for key, value in cell.items():
            say(f"state of {name}: {key} = {plain(value)}")


@sessions.command()
@click.argument("session", required=False)
@store_option
@json_option
@click.pass_context
def verify(context: click.Context, session: str | None, store: str | None, as_json: bool) -> None:
    """Reads a session, or all of them, and says whether the logs are whole and add up to a conversation.

    The exit code is 1 when one is not, or when there is something in the store that it warns of.
    """
    with opened(store) as kept, _warnings() as warnings:
        keys = [info.key for info in kept.logs(session)]
        if session is not None and not keys:
            keys = [LogKey(session, DEFAULT_AGENT)]

        results = [told for key in keys if (told := _verified(kept, key)) is not None]
        if session is not None and not results:
            raise unknown(kept, session)

    if as_json:
        click.echo(as_json_text({"logs": results, "warnings": warnings}))
    else:
        _tell(results, warnings)

    context.exit(1 if warnings or any(each["problems"] for each in results) else 0)


def _tell(results: list[dict[str, Any]], warnings: list[str]) -> None:
    for each in results:
        key = LogKey(each["session"], each["agent"])
        known = f"{counted(each['records'], 'record')}, {each['standing']}"
        say(f"{'bad' if each['problems'] else 'ok '}  {named(key)}: {known}")
        for problem in each["problems"]:
            say(f"     {problem}")

    for warning in warnings:
        say(f"bad  {warning}")


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the store warns of: it passes over what it cannot list."""
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    listener, logger = Listener(logging.WARNING), logging.getLogger("ropewalk")
    logger.addHandler(listener)
    try:
        yield told
    finally:
        logger.removeHandler(listener)


def _verified(store: LogStore, key: LogKey) -> dict[str, Any] | None:
    """What is known of a log; None when there is none."""
    told: dict[str, Any] = {"session": key.session_id, "agent": key.agent_id, "records": 0, "standing": "unknown"}
    problems: list[str] = []
    try:
        found = store.read(key)
        if found is None:
            return None

        told["records"] = len(found.records)
        problems += found.report
        told["standing"] = standing(state_of(key, found.records))
    except Exception as error:  # noqa: BLE001 - the others are read all the same
        problems.append(f"{type(error).__name__}: {error}")

    return {**told, "problems": problems}


@sessions.command()
@click.argument("session")
@store_option
@agent_option
@click.option("--keep-last", type=click.IntRange(min=0), metavar="RUNS", help="Keep the last runs record by record.")
@click.option("--max-age", type=click.FloatRange(min=0), metavar="SECONDS", help="Keep runs that are not older.")
def compact(
    session: str, store: str | None, agent_id: str | None, keep_last: int | None, max_age: float | None
) -> None:
    """Folds what has happened into one record, for all agents of the session, or one.

    The conversation stays as it is, and a paused run stays paused; `trace` and `SESSION@N` see what is left. Without
    options all is folded.
    """
    if max_age is not None and not math.isfinite(max_age):
        raise click.BadParameter(f"{max_age} is no number of seconds", param_hint="--max-age")

    everything = keep_last is None and max_age is None
    retention = Retention(keep_last, max_age, compact_to_latest=everything)
    with opened(store) as kept:
        before = _infos(kept, session, agent_id)
        for info in before:
            asyncio.run(_compacted(kept, info.key, retention))

        after = _infos(kept, session, agent_id)

    say(f"{shown(session)}: {_bytes(sum(i.size for i in before))} before, {_bytes(sum(i.size for i in after))} now")


async def _compacted(store: LogStore, key: LogKey, retention: Retention) -> None:
    lease = await store.lease(key)
    try:
        found = store.read(key)
        if found is None:
            return

        for line in found.report:
            warn(f"{named(key)}: {line}")

        now = time.time()
        cut = retention.cut(found.records, now)
        if cut > 1:
            await store.replace(key, compacted(found.records, cut, now), found.position)
    except ValueError as error:
        raise SessionException(f"{named(key)} was not compacted: {error}") from error
    finally:
        waiting = lease.release()
        if waiting is not None:
            await waiting


@sessions.command()
@click.argument("names", nargs=-1, required=True, metavar="SESSION...")
@store_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], store: str | None, yes: bool) -> None:
    """Deletes sessions with all that is kept of them."""
    with opened(store) as kept:
        wanted = list(dict.fromkeys(names))
        for each in wanted:
            if not kept.logs(each):
                raise unknown(kept, each)

        if not yes and not _confirmed(f"Delete {', '.join(map(repr, wanted))} from {kept!r}?"):
            raise click.Abort

        for each in wanted:
            kept.delete(each)
            say(f"{shown(each)} is deleted")


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise

        click.echo(err=True)
        raise click.UsageError("nobody is there to ask: give --yes to delete without a question") from None


def _infos(store: LogStore, session: str, agent_id: str | None) -> list[LogInfo]:
    found = [info for info in store.logs(session) if agent_id is None or info.key.agent_id == agent_id]
    if not found:
        raise unknown(store, session, agent_id)

    return found


def _plain(info: LogInfo) -> dict[str, Any]:
    return {
        "session": info.key.session_id, "agent": info.key.agent_id, "size": info.size, "changed": info.changed,
    }  # fmt: skip


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004 - a kilobyte
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"

        size /= 1000

    return f"{size:.1f} GB"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
