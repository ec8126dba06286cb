"""`--session` and `--store`: a run whose conversation is kept in a session."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from ropewalk.kits.sessions.manager import SessionManager
from ropewalk.kits.sessions.opening import opened
from ropewalk_cli.loading import not_blank
from ropewalk_cli.questions import tell_paused
from ropewalk_cli.saved import PAUSES

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult
    from ropewalk_cli.display import Display
    from ropewalk_cli.saved import AgentOptions

store_option: Final[Callable[[Any], Any]] = click.option(
    "--store",
    metavar="STORE",
    help="Where sessions are kept: a folder, sqlite:///FILE, postgresql://..., s3://BUCKET/PREFIX. "
    "Default: $ROPEWALK_STORE, else the folder of FileSessionManager.",
)


def session_options(command: Any) -> Any:
    """Adds `--session` and `--store`."""
    session = click.option(
        "--session",
        metavar="ID",
        callback=not_blank,
        help="Keep the conversation in this session, or go on with the one that is there.",
    )
    return session(store_option(command))


@contextmanager
def session_of(session_id: str | None, store: str | None) -> Iterator[SessionManager | None]:
    """The manager of a session, whose store is closed at the end; None without a session.

    Raises:
        click.UsageError: A store is given and no session.
    """
    if session_id is None:
        if store is not None:
            raise click.UsageError("--store says where a session is kept: give --session ID too")

        yield None
        return

    with opened(store) as kept:
        yield SessionManager(session_id, kept)


def attached(agent: Any, manager: SessionManager | None) -> Any:
    """The agent, made elsewhere, with its conversation in a session.

    Raises:
        click.UsageError: It has a session of its own.
    """
    if manager is None:
        return agent

    if agent.session_manager is not None:
        raise click.UsageError(f"the agent has a session of its own ({agent.session_manager!r}): leave out --session")

    agent.add_plugin(manager)
    known = manager.read_records(agent)
    if known is not None:
        agent.restore(known)

    return agent


def run_in_session(
    converse: Callable[..., Any], agent: Any, prompt: Any, display: Display, manager: SessionManager, again: str
) -> AgentResult:
    """Runs the agent once, and says how to go on with it when it waits: by the command `again`."""
    result: AgentResult = asyncio.run(converse(agent, prompt, display, kept=True))
    if result.stop_reason in PAUSES:
        tell_paused(result, f"session {manager.session_id!r}", again)

    return result


def resume_command(session_id: str, options: AgentOptions, store: str | None) -> str:
    """What to type to go on with a paused run: a session does not keep what the agent is made of."""
    words = ["ropewalk", "resume", session_id]
    if store is not None and "@" in store:
        store = "STORE"  # there may be a password in it, which is nobody's who reads this

    for option, value in (("--store", store), ("--model", options.model), ("--agent", options.agent)):
        words += [] if value is None else [option, value]

    for each in options.tools:
        words += ["--tools", each]

    words += [f"--plugin={each}" for each in options.plugins]
    words += ["--system", options.system] if options.system is not None else []
    words += ["--approve", ",".join(options.approve)] if options.approve else []
    words += ["--checkpointing"] if options.checkpointing else []
    return shlex.join(words)
