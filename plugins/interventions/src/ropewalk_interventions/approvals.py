"""Approvals: a question about one call, and an answer that holds for that tool with that input and for nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ropewalk import Interrupt, Suspend, ToolCall, current_run
from ropewalk.kits.json_values import packed, strict_json, unpacked
from ropewalk.kits.suspension import interrupt_id

if TYPE_CHECKING:
    from ropewalk.run import Run

WHERE: Final = "before_tool_call"


def seal_of(call: ToolCall) -> str:
    """A digest of the tool and the input of a call, in hexadecimal."""
    tool, use = call.tool, call.tool_use
    named = None if tool is None else [tool.tool_name, strict_json(tool.tool_spec)]
    plain = json.dumps([use["name"], named, packed(use["input"])], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def question_of(call: ToolCall, name: str, seal: str) -> str:
    """The id of a handler's question about a call. Another tool or input makes it another question."""
    return interrupt_id(WHERE, f"{name} {seal}", call.tool_use["toolUseId"])


def answer_to(call: ToolCall, name: str, prompt: Any, seal: str) -> Any:
    """The answer to a handler's question.

    Raises:
        Suspend: There is none yet.
        RuntimeError: Nobody could answer: the call is a direct one, or its run is beside another one.
    """
    number = question_of(call, name, seal)
    if number in call.answers:
        return unpacked(packed(call.answers[number]))

    with contextlib.suppress(Suspend):
        call.interrupt(name, prompt, where=WHERE)  # raises where nobody can be asked

    raise Suspend((Interrupt(number, name, packed(prompt)),))


async def once(call: ToolCall, prefix: str, key: str, act: Callable[[], Any]) -> Any:
    """Does something once for a call in its run; a direct call has no run that could remember it."""
    run = _run_of(call)
    if run is None:
        return await at_once(key, act)

    return await run.once(f"{prefix}:{call.tool_use['toolUseId']}:{run.cycle}:{key}", act)


async def at_once(_key: str, act: Callable[[], Any]) -> Any:
    """Does something now."""
    value = act()
    return await value if inspect.isawaitable(value) else value


def _run_of(call: ToolCall) -> Run | None:
    try:
        run = current_run()
    except RuntimeError:
        return None

    # A hook of a run that calls a tool directly is in that run, and the call is not.
    return run if call.idempotency_key == f"{run.id}:{call.tool_use['toolUseId']}" else None
