"""`ropewalk resume`: goes on with a run that `ropewalk run --snapshot` has saved."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ropewalk.errors import MaxTokensReachedException, RopewalkError
from ropewalk.kits.snapshot import Snapshot
from ropewalk.kits.terminal import harmless
from ropewalk_cli.approving import approve_option
from ropewalk_cli.claiming import claimed
from ropewalk_cli.display import Display, JsonDisplay, TextDisplay
from ropewalk_cli.exits import Exit, exit_of, report
from ropewalk_cli.main import debug_option
from ropewalk_cli.run import agent_of, agent_options, converse
from ropewalk_cli.saved import PAUSES, AgentOptions, SavedRun, SavedRunError, read, saved_run, write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropewalk.kits.result import AgentResult

_NOTHING: Final = object()


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--answer", "answers", multiple=True, metavar="ID=JSON", help="Answers a question, by id or name. Can be repeated."
)
@agent_options
@approve_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line; the last has the result.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Show thinking, whole arguments and results; all events with --json."
)
@debug_option
@click.pass_context
def resume(
    context: click.Context,
    file: Path,
    answers: tuple[str, ...],
    model: str | None,
    agent_spec: str | None,
    tools: tuple[str, ...],
    plugins: tuple[str, ...],
    system: str | None,
    approve: frozenset[str],
    as_json: bool,
    verbose: bool,
) -> None:
    """Goes on with the paused run in FILE.

    The agent is made as FILE says; the options of `ropewalk run` replace what it says. Questions without an --answer
    are asked on the terminal. FILE is written anew when the run pauses again, and removed when it has ended; when the
    resume is refused it stays as it is.

    Exit codes: those of `ropewalk run`; 4 when the run waits again.
    """
    display: Display = JsonDisplay(verbose=verbose) if as_json else TextDisplay(verbose=verbose)
    given = AgentOptions(model, agent_spec, tools, plugins, system, tuple(approve))
    try:
        with claimed(file):
            saved = read(file)
            options = _replaced(saved.options, given)
            agent = agent_of(options)
            _load(agent, saved, file)
            result = run_saved(agent, _prompt(saved, answers, file), display, file, options)
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


def run_saved(agent: Any, prompt: Any, display: Display, file: Path, options: AgentOptions) -> AgentResult:
    """Runs the agent once; the file holds it afterwards if there is something to go on with."""
    existed = file.is_file() and file.stat().st_size > 0
    try:
        result = asyncio.run(converse(agent, prompt, display, kept=True))
    except Exception:
        if existed and agent.suspension is None:  # the run has gone on: what the file says would do it again
            write(file, saved_run(agent, options, None))
            _note(f"broken off; {file} holds the conversation up to there: ropewalk resume {file} goes on with it")

        raise

    if result.stop_reason in PAUSES:
        write(file, saved_run(agent, options, result))
        _tell_paused(result, file)
    elif existed and result.stop_reason == "cancelled":
        if agent.suspension is None:
            write(file, saved_run(agent, options, None))

        _note(f"cancelled; {file} holds the conversation up to there: ropewalk resume {file} goes on with it")
    elif existed:
        file.unlink(missing_ok=True)
        _note(f"the run has ended; {file} is removed")

    return result


def _tell_paused(result: AgentResult, file: Path) -> None:
    questions = [{"id": each.id, "name": each.name, "reason": each.reason} for each in result.interrupts or ()]
    for line in _told(questions):
        _note(line)

    if questions:
        _note(f"the run waits for answers in {file}: ropewalk resume {file} --answer ID=JSON goes on with it")
    else:
        plain = result.to_dict()["checkpoint"] or {}
        where = f"{plain.get('position')} {plain.get('cycle_index')}"
        _note(f"the run waits at {where} in {file}: ropewalk resume {file} goes on with it")


def _told(questions: Iterable[dict[str, Any]]) -> list[str]:
    return [f"? {each['id']}: {harmless(_text_of(each))}" for each in questions]  # all of it: nobody approves blindly


def _text_of(question: dict[str, Any]) -> str:
    reason = question.get("reason")
    if reason is None:
        return str(question["name"])

    return f"{question['name']}: {reason if isinstance(reason, str) else json.dumps(reason, ensure_ascii=False)}"


def _note(text: str) -> None:
    click.secho(text, dim=True, err=True)


def _replaced(stored: AgentOptions, given: AgentOptions) -> AgentOptions:
    """The stored options with those that were given now; tools that are asked about stay asked about."""
    if given.agent is not None:
        stored = AgentOptions(approve=stored.approve, checkpointing=stored.checkpointing)

    changes = {
        name: value
        for name in ("model", "agent", "tools", "plugins", "system")
        if (value := getattr(given, name)) not in (None, ())
    }
    return replace(stored, **changes, approve=tuple(sorted({*stored.approve, *given.approve})))


def _load(agent: Any, saved: SavedRun, file: Path) -> None:
    try:
        agent.load_snapshot(Snapshot.from_dict(saved.snapshot))
    except RopewalkError as error:
        raise SavedRunError(f"{file} holds no paused run that can be gone on with: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SavedRunError(f"{file} holds a broken snapshot ({type(error).__name__}: {error})") from error

    if saved.resume is not None and agent.suspension is None:
        raise SavedRunError(f"{file} holds a payload and no paused run: name a file that `ropewalk run` wrote")


# -- answers -------------------------------------------------------------------------------------------------------


def _prompt(saved: SavedRun, answers: tuple[str, ...], file: Path) -> Any:
    """What the agent is called with.

    Raises:
        click.UsageError: Answers are missing, malformed, or for nothing.
    """
    questions = saved.questions
    if not questions:
        if answers:
            raise click.UsageError(f"{file} waits for no answer: leave out --answer")

        return saved.resume

    given = dict(_parsed(text, questions) for text in answers)
    if len(given) < len(answers):
        raise click.UsageError("--answer answers a question twice: answer each once")

    if at_a_terminal():
        given |= {each["id"]: _asked(each) for each in questions if each["id"] not in given}

    if not given:
        lines = "\n".join(_told(questions))
        raise click.UsageError(f"{file} waits for answers: give --answer ID=JSON for\n{lines}")

    return [{"interruptResponse": {"interruptId": number, "response": value}} for number, value in given.items()]


def _parsed(text: str, questions: list[dict[str, Any]]) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--answer {text}: give ID=JSON")

    found = [each["id"] for each in questions if key in (each["id"], each["name"])]
    if len(found) != 1:
        problem = "several questions have that name: use the id of" if found else "there is no such question: there is"
        raise click.UsageError(f"--answer {text}: {problem}\n" + "\n".join(_told(questions)))

    answer = _json(value)
    if answer is _NOTHING:
        raise click.UsageError(f"""--answer {text}: {value!r} is no JSON: a text needs quotes, as in '{key}="yes"'""")

    return found[0], answer


def _json(text: str) -> Any:
    """The value of a JSON text; NaN and the like are none."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _NOTHING


def at_a_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _asked(question: dict[str, Any]) -> Any:
    """The answer of whoever sits at the terminal: JSON, or else the text itself."""
    click.echo(f"{harmless(_text_of(question))} ", err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        raise click.Abort

    answer = _json(line)
    return line.strip() if answer is _NOTHING else answer
