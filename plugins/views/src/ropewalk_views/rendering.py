"""Messages and states as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ropewalk.kits.json_values import strict_json
from ropewalk.kits.log.fold import LogState
from ropewalk.kits.terminal import first_line


def counted(number: int, what: str) -> str:
    """A number of things, as in `1 record` and `2 records`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def plain(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(strict_json(value), ensure_ascii=False, sort_keys=True)


def call_of(use: Mapping[str, Any]) -> str:
    """A tool use in one line."""
    return f"{use['name']} {json.dumps(strict_json(use['input']), ensure_ascii=False)}"


def pieces(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a message is made of: who speaks or what it is, and the text."""
    role = str(message["role"])
    for block in message["content"]:
        if "text" in block:
            yield role, str(block["text"])
        elif "toolUse" in block:
            yield f"{role} calls", call_of(block["toolUse"])
        elif "toolResult" in block:
            result = block["toolResult"]
            yield f"result ({result['status']})", text_of_result(result)
        elif "toolResultOf" in block:
            yield "result", f"of {block['toolResultOf']}"
        elif "reasoningContent" in block:
            thought = block["reasoningContent"].get("reasoningText", {}).get("text")
            yield f"{role} thinks", str(thought) if thought is not None else "<hidden>"
        else:
            yield role, f"<{next(iter(block), 'nothing')}>"

    if not message["content"]:
        yield role, "<nothing>"


def text_of_result(result: Mapping[str, Any]) -> str:
    """The texts in a tool result; other content as JSON, or by its kind."""
    return "\n".join(_content(block) for block in result.get("content", ()))


def _content(block: Mapping[str, Any]) -> str:
    if "text" in block:
        return str(block["text"])

    return plain(block["json"]) if "json" in block else f"<{next(iter(block), 'nothing')}>"


def whole(message: Mapping[str, Any]) -> list[str]:
    """A message with all its lines; those of one piece that follow its first are set in."""
    lines: list[str] = []
    for what, text in pieces(message):
        first, *others = text.splitlines() or [""]
        lines += [f"{what}: {first}", *(f"    {line}" for line in others)]

    return lines


def short(message: Mapping[str, Any], most: int = 100) -> str:
    """A message in one line."""
    shown = [f"{what}: {first_line(text, most=most)}" for what, text in pieces(message)]
    return first_line("; ".join(shown), most=2 * most)


def standing(state: LogState) -> str:
    """What a log's agent is at."""
    pause = state.pause
    if pause is None:
        return "idle" if state.stopped is None else f"ended: {state.stopped}"

    if pause.kind == "crash":
        return "broken off"

    names = ", ".join(first_line(each.name, most=40) for each in pause.interrupts)
    return f"waits for answers: {names}" if pause.kind == "interrupt" else "waits at a checkpoint"


def lines_of(state: LogState) -> list[str]:
    """All that an agent is, for comparing: its messages, its state, that of its plugins, what it waits for."""
    lines = [line for message in state.messages for line in whole(message)]
    lines += [f"state {key} = {plain(value)}" for key, value in sorted(state.state.items())]
    for name, cell in sorted(state.cells.items()):
        lines += [f"state of {name}: {key} = {plain(value)}" for key, value in sorted(cell.items())]

    return lines if state.pause is None else [*lines, standing(state)]
