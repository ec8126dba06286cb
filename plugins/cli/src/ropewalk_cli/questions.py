"""The questions of a run that waits: telling them, and answering them on the command line or the terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ropewalk.kits.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropewalk.kits.result import AgentResult

_NOTHING: Final = object()


def tell_paused(result: AgentResult, place: str, command: str) -> None:
    """Says what a run waits for, and how to go on with it.

    Args:
        result: The result of the paused run.
        place: Where it is kept.
        command: What goes on with it.
    """
    questions = [{"id": each.id, "name": each.name, "reason": each.reason} for each in result.interrupts or ()]
    for line in _told(questions):
        note(line)

    if questions:
        note(f"the run waits for answers in {place}: {command} --answer ID=JSON goes on with it")
    else:
        plain = result.to_dict()["checkpoint"] or {}
        where = f"{plain.get('position')} {plain.get('cycle_index')}"
        note(f"the run waits at {where} in {place}: {command} goes on with it")


def _told(questions: Iterable[dict[str, Any]]) -> list[str]:
    return [f"? {each['id']}: {harmless(_text_of(each))}" for each in questions]  # all of it: nobody approves blindly


def _text_of(question: dict[str, Any]) -> str:
    reason = question.get("reason")
    if reason is None:
        return str(question["name"])

    return f"{question['name']}: {reason if isinstance(reason, str) else json.dumps(reason, ensure_ascii=False)}"


def note(text: str) -> None:
    """Says something on standard error, beside the answer."""
    click.secho(text, dim=True, err=True)


def answers_to(questions: list[dict[str, Any]], answers: tuple[str, ...], place: str) -> list[dict[str, Any]] | None:
    """What an agent that waits is called with; None when it waits for no answers.

    Args:
        questions: What it waits for.
        answers: Those of the command line, `ID=JSON`; the others are asked on the terminal.
        place: Where the run is kept, for errors.

    Raises:
        click.UsageError: Answers are missing, malformed, or for nothing.
    """
    if not questions:
        if answers:
            raise click.UsageError(f"{place} waits for no answer: leave out --answer")

        return None

    given = dict(_parsed(text, questions) for text in answers)
    if len(given) < len(answers):
        raise click.UsageError("--answer answers a question twice: answer each once")

    if at_a_terminal():
        given |= {each["id"]: asked(each) for each in questions if each["id"] not in given}

    if not given:
        lines = "\n".join(_told(questions))
        raise click.UsageError(f"{place} waits for answers: give --answer ID=JSON for\n{lines}")

    return responses(given)


def responses(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The prompt that carries answers, by the id of the question."""
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


def asked(question: dict[str, Any]) -> Any:
    """The answer of whoever sits at the terminal: JSON, or else the text itself."""
    click.echo(f"{harmless(_text_of(question))} ", err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        if not at_a_terminal():
            click.echo(err=True)  # what is said next has a line of its own

        raise click.Abort

    answer = _json(line)
    return line.strip() if answer is _NOTHING else answer
