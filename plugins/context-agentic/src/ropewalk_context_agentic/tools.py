"""The tools with which a model manages its context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from ropewalk import Tool, ToolCall, ToolResult, ToolSpec, error_result
from ropewalk.kits.aio.seam import current_seam
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
)

CELL: Final = "context-agentic"
MOST_CHARS: Final = 40_000
CONTEXT_LINES: Final = 5
_OFFLOADED: Final = "retrieve_offloaded_content"


def tools() -> list[Tool]:
    """The four tools."""
    return [
        WishTool(
            "summarize_context",
            "Replaces older messages of this conversation by a summary, to make room. Pinned messages stay.",
            {"keep_recent": _KEEP, "summary_ratio": _RATIO, "message_type": _types(SUMMARY_TYPES)},
            lambda given: summarize_wish(given, _reference()),
        ),
        WishTool(
            "truncate_context",
            "Removes older messages of this conversation, or their long parts, to make room. Pinned messages stay.",
            {"keep_recent": _KEEP, "message_type": _types(TYPES)},
            lambda given: truncate_wish(given, _reference()),
        ),
        WishTool(
            "pin_context",
            "Pins messages of this conversation: they are never summarized or removed. Or unpins them.",
            {"select": _SELECT, "filter": _FILTER, "action": {"type": "string", "enum": ["pin", "unpin"]}},
            pin_wish,
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


def _reference() -> str:
    return current_seam().new_id("ctx_")


@final
class WishTool:
    """Notes a wish, which is carried out as soon as the tools of the turn have run."""

    effect: Final = "idempotent"

    def __init__(
        self, name: str, description: str, properties: dict[str, Any], wish: Callable[[Mapping[str, Any]], Wish]
    ) -> None:
        self.tool_name: Final = name
        schema = {"json": {"type": "object", "properties": properties, "required": []}}
        self.tool_spec: Final[ToolSpec] = {"name": name, "description": description, "inputSchema": schema}
        self._wish = wish

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Looks at the arguments and notes the wish."""
        use_id = call.tool_use["toolUseId"]
        try:
            wish = self._wish(call.tool_use["input"])
        except WishError as error:
            return error_result(use_id, f"Error: {error}")

        note(call.agent.plugin_state(CELL), wish)
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
            shown = _excerpt(text, given)
        except WishError as error:
            return error_result(use_id, f"Error: {error}")

        if len(shown) > MOST_CHARS:
            shown = f"{shown[:MOST_CHARS]}\n[... {len(shown) - MOST_CHARS} characters more: use pattern or line_range]"

        return {"toolUseId": use_id, "status": "success", "content": [{"text": shown}]}


def _excerpt(text: str, given: Mapping[str, Any]) -> str:
    lines = text.splitlines()
    first, last = 1, len(lines)
    span = given.get("line_range")
    if span is not None:
        try:
            first, last = int(span.get("start") or 1), int(span.get("end") or len(lines))
        except (AttributeError, TypeError, ValueError):
            raise WishError(f'line_range is {span!r}: give {{"start": 1, "end": 50}}') from None

    chosen = range(max(first, 1) - 1, min(last, len(lines)))
    pattern = given.get("pattern")
    if pattern:
        chosen = _matching(lines, chosen, str(pattern), given.get("context_lines", CONTEXT_LINES))
        if not chosen:
            raise WishError(f"no line matches {pattern!r}; the text has {len(lines)} lines")

    if span is None and not pattern:
        return text

    return "\n".join(f"{at + 1}: {lines[at]}" for at in chosen) or f"(no such lines: the text has {len(lines)})"


def _matching(lines: list[str], within: range, pattern: str, around: Any) -> Any:
    try:
        wanted = re.compile(pattern)
    except re.error:
        wanted = re.compile(re.escape(pattern))  # a small model's text with a bracket in it

    reach = around if isinstance(around, int) and around >= 0 else CONTEXT_LINES
    found: set[int] = set()
    for at in within:
        if wanted.search(lines[at][:MOST_CHARS]):
            found.update(range(max(at - reach, 0), min(at + reach + 1, len(lines))))

    return sorted(found)
