"""The tool with which a model reads what was offloaded."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from ropewalk import ToolResult, ToolSpec, error_result
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.context.searching import PatternError, found_in
from ropewalk.types import ToolResultContent
from ropewalk_offload.content import CHARS_PER_TOKEN, is_media, rendered, tokens_of

if TYPE_CHECKING:
    from ropewalk import Agent, ToolCall

NAME: Final = "retrieve_offloaded_content"
MOST_CHARS: Final = 40_000
CONTEXT_LINES: Final = 5
_MOST_CONTEXT: Final = 500
_NOTE: Final = 300
"""Characters that are left for what is said about the text."""

_RANGE: Final = re.compile(r"\s*(\d+)\s*(?:-|:|,|\.\.|to)\s*(\d+)\s*")


class ArgumentError(ValueError):
    """The model's arguments make no sense, or nothing is there; the text is for the model."""


@final
class RetrievalTool:
    """Shows what stands behind a reference: all of it, some lines, or those that match a pattern.

    Args:
        content_of: Reads the content behind what a model gave as reference; raises ArgumentError.
    """

    effect: Final = "pure"
    tool_name: Final = NAME
    tool_spec: Final[ToolSpec] = {
        "name": NAME,
        "description": "Reads a tool result that was too large to be shown whole, by the reference in its preview. "
        "Give a pattern or a line_range to read only what you need; without them it is read from the beginning, up to "
        f"{MOST_CHARS:,} characters at once.",
        "inputSchema": {
            "json": {
                "type": "object",
                "properties": {
                    "reference": {"type": "string", "description": "As it stands in the preview: off_..."},
                    "pattern": {"type": "string", "description": "Regular expression: shows the lines that match."},
                    "line_range": {
                        "type": "object",
                        "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
                        "description": "First and last line to read, from 1.",
                    },
                    "context_lines": {
                        "type": "integer",
                        "description": f"Lines shown around each match; default {CONTEXT_LINES}.",
                    },
                    "offset": {"type": "integer", "description": "Character from which to read on, from 0."},
                    "piece": {
                        "type": "integer",
                        "description": "Only this piece of a result that has several, from 1; for images.",
                    },
                },
                "required": ["reference"],
            }
        },
    }

    def __init__(self, content_of: Callable[[Agent, Any], Awaitable[list[ToolResultContent]]]) -> None:
        self._content_of = content_of

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Reads the reference; what goes wrong is an error result that says what to do."""
        use_id, given = call.tool_use["toolUseId"], call.tool_use["input"]
        try:
            content = await self._content_of(call.agent, given.get("reference"))
            shown = await in_thread(excerpt, content, given)
        except (ArgumentError, PatternError) as error:
            return error_result(use_id, f"Error: {error}")

        return {"toolUseId": use_id, "status": "success", "content": shown}


def excerpt(content: list[ToolResultContent], given: Mapping[str, Any]) -> list[ToolResultContent]:
    """What the arguments of a call ask for.

    Args:
        content: The content of the result.
        given: The arguments.

    Raises:
        ArgumentError: They do not fit.
        PatternError: The pattern cannot be searched for.
    """
    first = 1
    if given.get("piece") is not None:
        first = _whole(given["piece"], "piece")
        if not 1 <= first <= len(content):
            raise ArgumentError(f"piece is {first}: the result has {len(content)}, numbered from 1")

        content = [content[first - 1]]

    text = rendered(content, first)
    pattern, span = given.get("pattern"), given.get("line_range")
    if pattern or span is not None:
        lines = text.split("\n")
        start, end = (1, len(lines)) if span is None else _range(span, len(lines))
        return [{"text": _matching(lines[start - 1 : end], given) if pattern else _numbered(lines, start, end)}]

    if given.get("offset") is None and len(content) == 1 and is_media(content[0]):
        return [_medium(content[0], text, MOST_CHARS // CHARS_PER_TOKEN)]

    media: list[ToolResultContent] = []
    offset = 0 if given.get("offset") is None else _whole(given["offset"], "offset")
    if offset == 0:
        media = _media_within(content, MOST_CHARS - min(len(text), MOST_CHARS))

    return [{"text": _from(text, offset)}, *media]


def _medium(piece: ToolResultContent, label: str, most_tokens: int) -> ToolResultContent:
    tokens = tokens_of(piece)
    if tokens > most_tokens:
        raise ArgumentError(f"{label} has about {tokens:,} tokens and cannot be shown: at most {most_tokens:,} can")

    return piece


def _media_within(content: list[ToolResultContent], chars: int) -> list[ToolResultContent]:
    """The images and documents for which there is room, in order; the labels in the text name all of them."""
    left, taken = chars // CHARS_PER_TOKEN, list[ToolResultContent]()
    for piece in content:
        if is_media(piece) and tokens_of(piece) <= left:
            left -= tokens_of(piece)
            taken.append(piece)

    return taken


def _from(text: str, offset: int) -> str:
    if not 0 <= offset <= max(len(text) - 1, 0):
        raise ArgumentError(f"offset is {offset:,}: the text has {len(text):,} characters, numbered from 0")

    if offset == 0 and len(text) <= MOST_CHARS:
        return text

    end = min(offset + MOST_CHARS - _NOTE, len(text))
    more = f"; read on with offset={end}" if end < len(text) else ""
    return f"[characters {offset:,} to {end:,} of {len(text):,}{more}]\n{text[offset:end]}"


def _numbered(lines: list[str], start: int, end: int) -> str:
    text = "\n".join(f"{number}: {lines[number - 1]}" for number in range(start, end + 1))
    if len(text) <= MOST_CHARS:
        return text

    note = f"[... {len(text):,} characters in these lines: ask for fewer, or read on with offset]"
    return f"{text[: MOST_CHARS - _NOTE]}\n{note}"


def _matching(lines: list[str], given: Mapping[str, Any]) -> str:
    pattern, reach = str(given["pattern"]), given.get("context_lines")
    reach = CONTEXT_LINES if reach is None else _whole(reach, "context_lines")
    if not 0 <= reach <= _MOST_CONTEXT:
        raise ArgumentError(f"context_lines is {reach}: give a number from 0 to {_MOST_CONTEXT}")

    first = 1 if given.get("line_range") is None else _range(given["line_range"], 0)[0]
    found = found_in(lines, pattern, reach, MOST_CHARS - _NOTE, first)
    if not found.text:
        pieces = ""
        if max(map(len, lines)) > found.window:
            pieces = f"; in long lines only matches of up to {found.window // 2} characters are found for this pattern"

        raise ArgumentError(f"no line matches {pattern!r:.200}; there are {len(lines):,} lines{pieces}")

    if found.complete and len(found.text) <= MOST_CHARS:
        return found.text

    note = "[... there is more: use a narrower pattern, a line_range or fewer context_lines]"
    return f"{found.text[: MOST_CHARS - _NOTE]}\n{note}"


def _range(span: Any, count: int) -> tuple[int, int]:
    """First and last line; also from `[10, 20]` and `"10-20"`, which small models write.

    Args:
        span: What the model gave.
        count: How many lines there are; 0 when only the first one is of interest.
    """
    start: Any = span
    end: Any = span
    if isinstance(span, Mapping):
        start, end = span.get("start"), span.get("end")
    elif isinstance(span, list) and len(span) == 2:  # noqa: PLR2004 - a pair
        start, end = span
    elif isinstance(span, str) and (found := _RANGE.fullmatch(span)):
        start, end = found.groups()

    first = 1 if start is None else _whole(start, "line_range")
    last = max(count, first) if end is None else _whole(end, "line_range")
    if first < 1 or last < first or (count and first > count):
        known = f"the text has {count:,} lines" if count else "lines are numbered from 1"
        raise ArgumentError(f'line_range is {span!r:.200}: give {{"start": 1, "end": 50}}; {known}')

    return first, min(last, count) if count else last


def _whole(value: Any, name: str) -> int:
    """A whole number, also one that a small model has written as text."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,15}\s*", value):
        return int(value)

    if isinstance(value, float) and value.is_integer():
        return int(value)

    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentError(f"{name} is {value!r:.200}: give a whole number")

    return value
