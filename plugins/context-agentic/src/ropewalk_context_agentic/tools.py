"""The tools with which a model manages its context."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, final

from ropewalk import Tool, ToolCall, ToolResult, ToolSpec, current_run, error_result
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.context.searching import PatternError, found_in
from ropewalk_context_agentic import stash
from ropewalk_context_agentic.wishes import (
    KEEP_RECENT,
    SUMMARY_TYPES,
    TYPES,
    Wish,
    WishError,
    note,
    pin_wish,
    summarize_wish,
    truncate_wish,
    whole_number,
)

CELL: Final = "context-agentic"
MOST_CHARS: Final = 40_000
CONTEXT_LINES: Final = 5
_MOST_CONTEXT: Final = 500
_OFFLOADED: Final = "retrieve_offloaded_content"


def tools() -> list[Tool]:
    """The four tools."""
    return [
        WishTool(
            "summarize_context",
            "Replaces older messages of this conversation by a summary, to make room. Pinned messages stay.",
            {"keep_recent": _KEEP, "summary_ratio": _RATIO, "message_type": _types(SUMMARY_TYPES)},
            summarize_wish,
        ),
        WishTool(
            "truncate_context",
            "Removes older messages of this conversation, or their long parts, to make room. Pinned messages stay.",
            {"keep_recent": _KEEP, "message_type": _types(TYPES)},
            truncate_wish,
        ),
        WishTool(
            "pin_context",
            "Pins messages of this conversation: they are never summarized or removed. Or unpins them.",
            {"select": _SELECT, "filter": _FILTER, "action": {"type": "string", "enum": ["pin", "unpin"]}},
            lambda given, _: pin_wish(given),
        ),
        RetrieveTool(),
    ]


_KEEP: Final = {
    "type": "integer",
    "description": f"Latest messages before this call that stay as they are; default {KEEP_RECENT}.",
}
_RATIO: Final = {"type": "number", "description": "Share of the messages to summarize at most, such as 0.5."}
_FILTER: Final = {"type": "string", "description": "Only messages that contain this text."}
_SELECT: Final = {
    "description": 'Which messages: "last_turn", how many of the latest, or a list of message numbers from 0.',
    "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "integer"}}],
}


def _types(known: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "string", "enum": list(known), "description": "What to act on; default all."}


def _reference(key: str) -> str:
    """A reference of its own for each call, and the same when it is run again."""
    return f"ctx_{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:20]}"


def _beside(call: ToolCall) -> str | None:
    """The run that asks, if it works beside the conversation."""
    run = current_run()
    return None if call.direct or run.history is run.agent.history else run.id


@final
class WishTool:
    """Notes a wish, which is carried out as soon as the tools of the turn have run."""

    effect: Final = "idempotent"

    def __init__(
        self, name: str, description: str, properties: dict[str, Any], wish: Callable[[Mapping[str, Any], str], Wish]
    ) -> None:
        self.tool_name: Final = name
        schema = {"json": {"type": "object", "properties": properties, "required": []}}
        self.tool_spec: Final[ToolSpec] = {"name": name, "description": description, "inputSchema": schema}
        self._wish = wish

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Looks at the arguments and notes the wish."""
        use_id = call.tool_use["toolUseId"]
        try:
            wish = self._wish(call.tool_use["input"], _reference(call.idempotency_key))
        except WishError as error:
            return error_result(use_id, f"Error: {error}")

        note(call.agent.plugin_state(CELL), replace(wish, key=call.idempotency_key, run=_beside(call)))
        text = "Done: it takes effect before your next message."
        if wish.reference is not None:
            text += f' What it takes out can be read with retrieve_context, reference "{wish.reference}".'

        return {"toolUseId": use_id, "status": "success", "content": [{"text": text}]}


@final
class RetrieveTool:
    """Shows again what was taken out of the context."""

    effect: Final = "pure"
    tool_name: Final = "retrieve_context"
    tool_spec: Final[ToolSpec] = {
        "name": "retrieve_context",
        "description": "Shows text that was removed from this conversation, by its reference: all of it, the lines of "
        "a range, or those that match a pattern.",
        "inputSchema": {
            "json": {
                "type": "object",
                "properties": {
                    "reference": {"type": "string"},
                    "pattern": {"type": "string", "description": "Regular expression."},
                    "line_range": {
                        "type": "object",
                        "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
                        "description": "First and last line, from 1.",
                    },
                    "context_lines": {
                        "type": "integer",
                        "description": f"Lines around each match; default {CONTEXT_LINES}.",
                    },
                    "offset": {"type": "integer", "description": "Character from which to read on, from 0."},
                },
                "required": ["reference"],
            }
        },
    }

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Reads the reference; one of offloaded content goes to the tool for that, if there is one."""
        use_id, given = call.tool_use["toolUseId"], call.tool_use["input"]
        state = call.agent.plugin_state(CELL)
        reference = str(given.get("reference", "")).strip()
        text = stash.read(state, reference)
        if text is None:
            offloaded = call.agent.tool_registry.get(_OFFLOADED)
            if offloaded is not None and not reference.startswith("ctx_"):
                answer: ToolResult = await offloaded.invoke(call)
                return answer

            known = ", ".join(stash.references(state)[-10:]) or "none"
            return error_result(use_id, f"Error: there is nothing under reference {reference!r}; there is: {known}")

        try:
            shown = await in_thread(_excerpt, text, given)
        except (WishError, PatternError) as error:
            return error_result(use_id, f"Error: {error}")

        return {"toolUseId": use_id, "status": "success", "content": [{"text": shown}]}


def _excerpt(text: str, given: Mapping[str, Any]) -> str:
    lines = text.splitlines() or [""]
    first, last = 1, len(lines)
    span, pattern, offset = given.get("line_range"), given.get("pattern"), given.get("offset")
    if span is not None:
        try:
            first, last = int(span.get("start") or 1), int(span.get("end") or len(lines))
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise WishError(f'line_range is {span!r:.200}: give {{"start": 1, "end": 50}}') from None

    chosen = range(max(first, 1) - 1, min(last, len(lines)))
    if pattern:
        return _within([lines[at] for at in chosen], chosen.start + 1, str(pattern), given.get("context_lines"))

    if span is None:
        return _cut(text, 0 if offset is None else offset)

    return _cut("\n".join(f"{at + 1}: {lines[at]}" for at in chosen)) or f"(no such lines: the text has {len(lines)})"


def _within(lines: list[str], first: int, pattern: str, around: Any) -> str:
    """The lines that match, with those around them; a model's pattern may take for ever, and is searched in bounds."""
    reach = around if isinstance(around, int) and 0 <= around <= _MOST_CONTEXT else CONTEXT_LINES
    found = found_in(lines, pattern, reach, MOST_CHARS, first)
    if not found.text:
        raise WishError(f"no line matches {pattern!r:.200}; {len(lines)} lines were searched")

    return _cut(found.text if found.complete else f"{found.text}\n[... there is more: use a narrower pattern]")


def _cut(text: str, offset: Any = 0) -> str:
    """As much of a text as is shown at once, from a character on."""
    begin = whole_number(offset)
    if begin is None or not 0 <= begin <= len(text):
        raise WishError(f"offset is {offset!r:.200}: the text has {len(text)} characters, numbered from 0")

    end = begin + MOST_CHARS
    more = f"\n[... {len(text) - end} characters more: use pattern, line_range or offset]" if end < len(text) else ""
    return text[begin:end] + more
