"""The answers to a paused run's questions: `[{"interruptResponse": {"interruptId": ID, "response": ANSWER}}, ...]`."""

from __future__ import annotations

from typing import Any, Final

from ropewalk.kits.json_values import packed
from ropewalk.kits.suspension.errors import (
    NothingToResumeError,
    ResumeTypeError,
    ResumeValueError,
    UnknownInterruptError,
)
from ropewalk.kits.suspension.state import Suspension

_BLOCK: Final = "interruptResponse"
_CHECKPOINT: Final = "checkpointResume"
NO_PAYLOAD: Final = object()
"""No payload of a checkpoint; None would be one, if a wrong one."""

_FORM: Final = f'pass [{{"{_BLOCK}": {{"interruptId": ID, "response": ANSWER}}}}, ...]'


def checked_form(prompt: Any, *, paused: bool) -> Any:
    """The payload of a prompt that resumes a checkpoint; NO_PAYLOAD for any other prompt.

    Args:
        prompt: What the agent was called with.
        paused: Whether the agent waits for anything.

    Raises:
        ResumeTypeError: The payload does not stand alone.
        ResumeValueError: It stands in a list.
        NothingToResumeError: The prompt answers questions, and none is open.
    """
    if isinstance(prompt, dict) and _CHECKPOINT in prompt:
        if len(prompt) > 1:
            others = ", ".join(sorted(map(str, set(prompt) - {_CHECKPOINT})))
            raise ResumeTypeError(f'the prompt holds {others} beside "{_CHECKPOINT}": pass that alone')

        return prompt[_CHECKPOINT]

    blocks = [block for block in prompt if isinstance(block, dict)] if isinstance(prompt, list) else []
    if any(_CHECKPOINT in block for block in blocks):
        raise ResumeValueError(f'"{_CHECKPOINT}" stands in a list: pass the dict {{"{_CHECKPOINT}": ...}} alone')

    if not paused and blocks and len(blocks) == len(prompt) and all(_BLOCK in block for block in blocks):
        raise NothingToResumeError(
            "the prompt answers an interrupt and none is pending: it was answered before, belongs to another run, or "
            "the agent's snapshot or session is not loaded; pass a prompt, or None to go on"
        )

    return NO_PAYLOAD


def resumes(prompt: Any, pause: Suspension) -> bool:
    """Whether a prompt is meant to go on with a paused run; the kernel checks whether it can."""
    if pause.kind == "interrupt":
        return isinstance(prompt, list)

    return prompt is None or (isinstance(prompt, dict) and _CHECKPOINT in prompt)


def answered(pause: Suspension, prompt: Any) -> Suspension:
    """The pause with the answers of a prompt; questions without one stay open.

    Any JSON value answers a question, also None, False and the empty text.

    Raises:
        ResumeTypeError: The prompt is no list of answers.
        ResumeValueError: An answer is malformed, or given twice.
        UnknownInterruptError: An answer is for a question that is not open.
    """
    if not isinstance(prompt, list):
        raise ResumeTypeError(f"the agent waits for answers, and the prompt is {type(prompt).__name__}: {_FORM}")

    answers: dict[str, Any] = {}
    for place, block in enumerate(prompt):
        where = f"prompt[{place}]"
        if not isinstance(block, dict) or set(block) != {_BLOCK}:
            raise ResumeTypeError(f"the agent waits for answers, and {where} is none: {_FORM}")

        number, response = _answer(block[_BLOCK], f"{where}.{_BLOCK}")
        if number in answers:
            raise ResumeValueError(f"{where} answers {number!r} a second time: answer each question once")

        answers[number] = response
        if all(each.id != number for each in pause.interrupts):
            raise UnknownInterruptError(_unknown(pause, number))

    return pause.with_answers(answers)


def _answer(value: Any, where: str) -> tuple[str, Any]:
    if not isinstance(value, dict):
        raise ResumeTypeError(f"{where} is {type(value).__name__}: {_FORM}")

    if set(value) != {"interruptId", "response"}:
        keys = ", ".join(sorted(map(str, value))) or "nothing"
        raise ResumeValueError(f'{where} holds {keys}: it needs "interruptId" and "response", and nothing else')

    number = value["interruptId"]
    if not isinstance(number, str):
        raise ResumeTypeError(f"{where}.interruptId is {type(number).__name__}: pass the id of the interrupt, a text")

    return number, packed(value["response"])


def _unknown(pause: Suspension, number: str) -> str:
    if number in pause.answers:
        return f"the interrupt {number!r} was answered before: answer the open ones of the last result"

    known = ", ".join(each.id for each in pause.interrupts)
    return f"the agent has no open interrupt {number!r}: it waits for {known}"
