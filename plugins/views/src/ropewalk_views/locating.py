"""Finds what the command line names: a store, a session in it, one of its agents, a place in its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey, LogStore, SessionException
from ropewalk.kits.terminal import harmless

store_option: Final = click.option(
    "--store",
    metavar="STORE",
    help="Where sessions are kept: a folder, sqlite:///FILE, postgresql://..., s3://BUCKET/PREFIX. "
    "Default: $ROPEWALK_STORE, else the folder of FileSessionManager.",
)
agent_option: Final = click.option(
    "--agent-id", "agent_id", metavar="ID", help="Which agent of the session, if it has several."
)
DEFAULT_AGENT: Final = "default"
"""The agent of a session that is asked for although the store lists none: what is wrong with it is to be told."""
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, slots=True)
class Log:
    """A log as a command looks at it.

    Attributes:
        key: Which log.
        records: Its records, the first `at` of them when a place was named.
        whole: How many there are in all.
        label: As the command line names it.
    """

    key: LogKey
    records: Sequence[Record]
    whole: int
    label: str

    def state(self) -> LogState:
        """What the records add up to.

        Raises:
            SessionException: They do not fit together.
        """
        return state_of(self.key, self.records)


def state_of(key: LogKey, records: Sequence[Record]) -> LogState:
    """What the records of a log add up to.

    Raises:
        SessionException: They do not fit together.
    """
    try:
        return fold(LogState(), records)
    except ValueError as error:
        raise SessionException(f"{named(key)}: {error}; look at it with the version that wrote it") from error


def named(key: LogKey) -> str:
    """How errors name a log."""
    return f"session {key.session_id!r}, agent {key.agent_id!r}"


def session_and(store: LogStore, text: str, mark: str) -> tuple[str, str | None]:
    """A session's id, and what stands behind the mark; an id may have the mark in it.

    Args:
        store: Where to look for it.
        text: What the command line says.
        mark: What stands between the two.
    """
    if mark not in text or store.logs(text):
        return text, None

    session_id, _, rest = text.rpartition(mark)
    return session_id, rest


def log_at(store: LogStore, text: str, agent_id: str | None) -> Log:
    """The log of `SESSION`, or its beginning of `SESSION@N`.

    Args:
        store: Where it is.
        text: What the command line says.
        agent_id: Which agent; may be None when the session has one alone.

    Raises:
        click.UsageError: N is no number of records that the log has, or several agents are meant.
        SessionException: There is no such log, or it cannot be read.
    """
    session_id, place = session_and(store, text, "@")
    log = log_of(store, session_id, agent_id, text)
    if place is None:
        return log

    if not place.isascii() or not place.isdecimal() or not 1 <= int(place[:18]) <= log.whole:
        raise click.UsageError(
            f"{text}: the number behind @ counts records from the beginning, from 1 to {log.whole} here; "
            f"ropewalk trace shows them"
        )

    return Log(log.key, log.records[: int(place)], log.whole, text)


def log_of(store: LogStore, session_id: str, agent_id: str | None, label: str) -> Log:
    """The whole log of a session's agent; see `log_at`."""
    key = LogKey(session_id, agent_id if agent_id is not None else _only_agent(store, session_id))
    found = store.read(key)
    if found is None:
        raise unknown(store, session_id, agent_id)

    for line in found.report:
        warn(f"{named(key)}: {line}")

    return Log(key, found.records, len(found.records), label)


def unknown(store: LogStore, session_id: str, agent_id: str | None = None) -> SessionException:
    """The error of naming what is not there."""
    what = f"session {session_id!r}" if agent_id is None else named(LogKey(session_id, agent_id))
    return SessionException(f"there is no {what} in {store!r}: ropewalk sessions list shows what there is")


def _only_agent(store: LogStore, session_id: str) -> str:
    agents = [info.key.agent_id for info in store.logs(session_id)]
    if len(agents) > 1:
        raise click.UsageError(
            f"session {session_id!r} has several agents: give --agent-id, one of {', '.join(map(repr, agents))}"
        )

    return agents[0] if agents else DEFAULT_AGENT


def shown(identifier: str) -> str:
    """An id as it stands, or quoted when it could be taken for something else."""
    return identifier if identifier.isprintable() and identifier.strip() == identifier else repr(identifier)


def say(text: str = "") -> None:
    """Writes a line to standard output, without what would steer a terminal."""
    click.echo(harmless(text))


def warn(text: str) -> None:
    """Writes a warning to standard error."""
    click.secho(f"Warning: {harmless(text)}", fg="yellow", err=True)


def as_json_text(value: Any) -> str:
    """Strict JSON for programs."""
    import json

    from ropewalk.kits.json_values import strict_json

    return json.dumps(strict_json(value), indent=1)
