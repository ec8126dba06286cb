"""`ropewalk chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ropewalk.kits.json_values import clean_text
from ropewalk.kits.sessions.errors import SessionException
from ropewalk_cli.approving import approve_option
from ropewalk_cli.display import TextDisplay
from ropewalk_cli.exits import Exit, report
from ropewalk_cli.main import debug_option
from ropewalk_cli.questions import asked, at_a_terminal, note, responses
from ropewalk_cli.run import agent_of, agent_options, turn
from ropewalk_cli.saved import PAUSES, AgentOptions
from ropewalk_cli.sessions import resume_command, session_of, session_options

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult

_PROMPT: Final = "> "


@click.command()
@agent_options
@approve_option
@session_options
@click.option("--verbose", "-v", is_flag=True, help="Show thinking, whole arguments and results.")
@debug_option
@click.pass_context
def chat(
    context: click.Context,
    model: str | None,
    agent_spec: str | None,
    tools: tuple[str, ...],
    plugins: tuple[str, ...],
    system: str | None,
    approve: frozenset[str],
    session: str | None,
    store: str | None,
    verbose: bool,
) -> None:
    """Talks with an agent, one line a turn; with --session the conversation is kept and can be gone on with.

    ctrl-C cancels the turn, ctrl-D ends the conversation. What the agent asks is asked here.

    Exit codes: 0 ended, 1 error, 2 wrong usage, 4 a run waits in the session, 130 cancelled (piped input).
    """
    options = AgentOptions(model, agent_spec, tools, plugins, system, tuple(sorted(approve)))
    with session_of(session, store) as manager, asyncio.Runner() as runner:
        agent = agent_of(options, manager)
        _ = agent.model  # what is wrong with it is said before somebody has typed a line
        talk = Conversation(agent, runner, verbose=verbose, debug=bool(context.find_root().meta.get("ropewalk.debug")))
        try:
            if session is not None:
                talk.tell_of(session)

            code = talk.go_on()
        finally:
            runner.run(agent.aclose())

        if session is not None and agent.suspension is not None:
            note(f"the run waits in session {session!r}: {resume_command(session, options, store)} goes on with it")
            code = code or Exit.PAUSED

    context.exit(code)


class Conversation:
    """Turn after turn, until the input ends.

    Args:
        agent: Whom to talk with.
        runner: Runs the turns, in one event loop: connections stay open between them.
        verbose: Whether thinking, whole arguments and results are shown.
        debug: Whether an error ends it, with its traceback.
    """

    def __init__(self, agent: Any, runner: asyncio.Runner, *, verbose: bool, debug: bool) -> None:
        self._agent = agent
        self._runner = runner
        self._verbose = verbose
        self._debug = debug
        self._at_a_terminal = at_a_terminal()

    def tell_of(self, session: str) -> None:
        """Says where a session that is gone on with stands."""
        number = len(self._agent.messages)
        if number:
            note(f"session {session!r}: {number} message{'' if number == 1 else 's'} so far")

        if self._agent.suspension is not None and self._agent.suspension.kind == "crash":
            note("its last run broke off: an empty line goes on with it, anything else closes it")

    def go_on(self) -> Exit:
        """Takes turns until the input ends, and gives the exit code."""
        while True:
            try:
                prompt = self._next()
            except (EOFError, click.Abort):
                if self._at_a_terminal:
                    click.echo(err=True)

                return Exit.DONE

            result = self._turn(prompt)
            if result is not None and result.stop_reason == "cancelled" and not self._at_a_terminal:
                return Exit.CANCELLED

    def _next(self) -> Any:
        """What the agent is called with next: answers, if it waits for them, else what is typed; None goes on.

        Raises:
            EOFError: The input is at its end.
            click.Abort: It ended where an answer was asked for.
        """
        while True:
            pause = self._agent.suspension
            try:
                if pause is not None and pause.interrupts:
                    return responses({each.id: asked(_question(each)) for each in pause.interrupts})

                line = self._line()
            except KeyboardInterrupt:
                if not self._at_a_terminal:
                    raise

                click.echo(err=True)  # as shells do: the line is given up, the conversation is not
                continue

            if line.strip():
                return clean_text(line)

            if pause is not None:
                return None

    def _line(self) -> str:
        if self._at_a_terminal and sys.stdout.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - gives `input` its editing and its history

            return input(_PROMPT)

        line = sys.stdin.readline() if sys.stdin is not None and not sys.stdin.closed else ""
        if not line:
            raise EOFError

        return line.rstrip("\r\n")

    def _turn(self, prompt: Any) -> AgentResult | None:
        """One turn; None when it failed.

        Raises:
            Exception: It failed and nobody is there to go on, or the session cannot be written any more.
        """
        display = TextDisplay(verbose=self._verbose)
        try:
            result: AgentResult = self._runner.run(turn(self._agent, prompt, display, kept=True))
        except (click.ClickException, BrokenPipeError, SessionException):
            raise
        except Exception as error:
            display.failed(error)
            if self._debug or not self._at_a_terminal:
                raise

            report(error)
            return None

        if result.stop_reason in PAUSES and not result.interrupts:
            note("the run waits at a checkpoint: an empty line goes on with it")

        return result


def _question(interrupt: Any) -> dict[str, Any]:
    return {"id": interrupt.id, "name": interrupt.name, "reason": interrupt.reason}
