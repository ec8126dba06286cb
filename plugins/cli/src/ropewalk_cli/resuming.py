"""`ropewalk resume`: goes on with a run that waits, in a file of `ropewalk run --snapshot` or in a session."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ropewalk.errors import MaxTokensReachedException, RopewalkError
from ropewalk.kits.sessions.opening import opened
from ropewalk.kits.snapshot import Snapshot
from ropewalk_cli.approving import approve_option
from ropewalk_cli.claiming import claimed
from ropewalk_cli.display import Display, JsonDisplay, TextDisplay
from ropewalk_cli.exits import Exit, exit_of, report
from ropewalk_cli.loading import not_blank
from ropewalk_cli.main import debug_option
from ropewalk_cli.questions import answers_to, note, tell_paused
from ropewalk_cli.run import agent_of, agent_options, converse
from ropewalk_cli.saved import PAUSES, AgentOptions, SavedRun, SavedRunError, read, saved_run, write
from ropewalk_cli.sessions import resume_command, run_in_session, session_of, store_option

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult


@click.command()
@click.argument("target", metavar="FILE|SESSION", callback=not_blank)
@store_option
@click.option(
    "--answer", "answers", multiple=True, metavar="ID=JSON", help="Answers a question, by id or name. Can be repeated."
)
@agent_options
@approve_option
@click.option("--checkpointing", is_flag=True, help="Pause at checkpoints, as a run that waits at one does anyway.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line; the last has the result.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Show thinking, whole arguments and results; all events with --json."
)
@debug_option
@click.pass_context
def resume(
    context: click.Context,
    target: str,
    store: str | None,
    answers: tuple[str, ...],
    model: str | None,
    agent_spec: str | None,
    tools: tuple[str, ...],
    plugins: tuple[str, ...],
    system: str | None,
    approve: frozenset[str],
    checkpointing: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Goes on with the run in FILE, or in SESSION, that is paused or broke off.

    What is no file is the id of a session; with --store it always is. Questions without an --answer are asked on the
    terminal.

    The agent is made as FILE says, or, for a session, by the options of `ropewalk run`, which also replace what FILE
    says. FILE is written anew when the run pauses again, and removed when it has ended; when the resume is refused it
    stays as it is.

    Exit codes: those of `ropewalk run`; 4 when the run waits again.
    """
    display: Display = JsonDisplay(verbose=verbose) if as_json else TextDisplay(verbose=verbose)
    given = AgentOptions(model, agent_spec, tools, plugins, system, tuple(approve), checkpointing)
    try:
        if _is_file(target, store):
            result = _resume_file(Path(target), given, answers, display)
        else:
            result = _resume_session(target, store, given, answers, display)
    except (click.ClickException, BrokenPipeError):
        raise
    except MaxTokensReachedException as error:
        display.failed(error)
        report(error)
        context.exit(Exit.STOPPED_EARLY)
    except Exception as error:
        display.failed(error)
        raise

    context.exit(exit_of(result.stop_reason, kept=True))


def _is_file(target: str, store: str | None) -> bool:
    """Whether a file is meant; also when there is neither: what is said of files then says more."""
    if store is not None or not target:
        return False

    if Path(target).is_file():
        return True

    try:
        with opened() as kept:
            return not kept.logs(target)
    except RopewalkError:
        return True


def _resume_file(file: Path, given: AgentOptions, answers: tuple[str, ...], display: Display) -> AgentResult:
    with claimed(file):
        saved = read(file)
        options = _replaced(saved.options, given)
        agent = agent_of(options)
        _load(agent, saved, file)
        prompt = answers_to(saved.questions, answers, str(file))
        return run_saved(agent, saved.resume if prompt is None else prompt, display, file, options)


def _resume_session(
    session_id: str, store: str | None, given: AgentOptions, answers: tuple[str, ...], display: Display
) -> AgentResult:
    with session_of(session_id, store) as manager:
        if manager is None or not manager.store.logs(session_id):
            raise SavedRunError(f"there is no session {session_id!r}: ropewalk sessions list shows what there is")

        agent = agent_of(given, manager)
        if agent.suspension is None:
            raise SavedRunError(
                f"session {session_id!r} waits for nothing: ropewalk run --session {shlex.quote(session_id)} PROMPT "
                "goes on with it"
            )

        _as_it_was(agent, given)
        questions = [{"id": each.id, "name": each.name, "reason": each.reason} for each in agent.suspension.interrupts]
        prompt = answers_to(questions, answers, f"session {session_id!r}")
        return run_in_session(converse, agent, prompt, display, manager, resume_command(session_id, given, store))


def _as_it_was(agent: Any, given: AgentOptions) -> None:
    """Sees to it that a run goes on as it began, as far as the session tells how that was.

    Raises:
        click.UsageError: It asked before it ran tools, and would not now.
    """
    if agent.suspension.kind == "checkpoint" and not agent.hooks.plan.emit_checkpoint:
        agent.add_plugin("checkpoint")

    if "approve" in agent.suspension.plugins and not given.approve:
        raise click.UsageError("the run asked before it ran tools: give --approve TOOLS again")


def run_saved(agent: Any, prompt: Any, display: Display, file: Path, options: AgentOptions) -> AgentResult:
    """Runs the agent once; the file holds it afterwards if there is something to go on with."""
    existed = file.is_file() and file.stat().st_size > 0
    try:
        result = asyncio.run(converse(agent, prompt, display, kept=True))
    except Exception:
        if existed and agent.suspension is None:  # the run has gone on: what the file says would do it again
            write(file, saved_run(agent, options, None))
            note(f"broken off; {file} holds the conversation up to there: ropewalk resume {file} goes on with it")

        raise

    if result.stop_reason in PAUSES:
        write(file, saved_run(agent, options, result))
        tell_paused(result, str(file), f"ropewalk resume {file}")
    elif existed and result.stop_reason == "cancelled":
        if agent.suspension is None:
            write(file, saved_run(agent, options, None))

        note(f"cancelled; {file} holds the conversation up to there: ropewalk resume {file} goes on with it")
    elif existed:
        file.unlink(missing_ok=True)
        note(f"the run has ended; {file} is removed")

    return result


def _replaced(stored: AgentOptions, given: AgentOptions) -> AgentOptions:
    """The stored options with those that were given now; tools that are asked about stay asked about."""
    if given.agent is not None:
        stored = AgentOptions(approve=stored.approve, checkpointing=stored.checkpointing)

    changes = {
        name: value
        for name in ("model", "agent", "tools", "plugins", "system")
        if (value := getattr(given, name)) not in (None, ())
    }
    approve = tuple(sorted({*stored.approve, *given.approve}))
    return replace(stored, **changes, approve=approve, checkpointing=stored.checkpointing or given.checkpointing)


def _load(agent: Any, saved: SavedRun, file: Path) -> None:
    try:
        agent.load_snapshot(Snapshot.from_dict(saved.snapshot))
    except RopewalkError as error:
        raise SavedRunError(f"{file} holds no paused run that can be gone on with: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SavedRunError(f"{file} holds a broken snapshot ({type(error).__name__}: {error})") from error

    if saved.resume is not None and agent.suspension is None:
        raise SavedRunError(f"{file} holds a payload and no paused run: name a file that `ropewalk run` wrote")
