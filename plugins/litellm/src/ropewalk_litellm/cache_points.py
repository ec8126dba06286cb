"""Which cache points a request keeps.

In OpenAI's shape a point is a mark (`cache_control`) on what stands before it. Providers take four marks, and none on
thinking; a point with nothing before it marks nothing. What is too much is left out here, not refused there: the
caller's point in the last turn counts first, then the tools', the system prompt's, and the newest of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ropewalk.types import Message

MOST_POINTS: Final = 4
SYSTEM: Final = -1
TOOLS: Final = -2

Place: TypeAlias = tuple[int, int]
"""Index of a message (or `SYSTEM`) and of the block in it that is marked; `(TOOLS, 0)` is the last tool."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The blocks of a request that are marked, each with its mark."""

    places: Mapping[Place, dict[str, Any]] = field(default_factory=dict)

    def at(self, message: int, block: int) -> dict[str, Any]:
        """`{"cache_control": ...}` for a block that is marked, else nothing."""
        mark = self.places.get((message, block))
        return {} if mark is None else {"cache_control": mark}


def marks_of(
    system: Sequence[Mapping[str, Any]], messages: Sequence[Message], *, tools: bool, auto: Mapping[str, Any] | None
) -> Marks:
    """The marks of a request.

    Args:
        system: The system prompt's blocks.
        messages: The conversation.
        tools: Whether there are tools to mark.
        auto: A cache point to set after the tools, the system prompt and the last user turn where the caller set none;
            None sets no more than the caller did.
    """
    in_system = _points(SYSTEM, system)
    turns = [_points(index, message["content"]) for index, message in enumerate(messages)]
    last = next((i for i in reversed(range(len(messages))) if messages[i]["role"] == "user"), None)
    in_tools: dict[Place, dict[str, Any]] = {}
    if auto is not None:
        mark = _mark(auto)
        in_tools = {(TOOLS, 0): mark} if tools else {}
        if system and not in_system:
            in_system = {(SYSTEM, len(system) - 1): mark}

        # what follows the caller's own point changes with every call: a mark there is written each time and never read
        if last is not None and not any("cachePoint" in block for block in messages[last]["content"]):
            turns[last] = {(last, len(messages[last]["content"]) - 1): mark}

    newest = list(turns[last]) if last is not None else []
    earlier = [place for turn in reversed(turns) for place in reversed(turn) if place not in newest]
    order = [*newest[-1:], *in_tools, *list(in_system)[-1:], *newest[-2::-1], *earlier, *list(in_system)[-2::-1]]
    every = {**in_system, **in_tools}
    for turn in turns:
        every.update(turn)

    return Marks({place: every[place] for place in order[:MOST_POINTS]})


def _points(message: int, blocks: Sequence[Mapping[str, Any]]) -> dict[Place, dict[str, Any]]:
    """The caller's points that mark something, in order."""
    found: dict[Place, dict[str, Any]] = {}
    before: int | None = None
    for index, block in enumerate(blocks):
        if "cachePoint" not in block:
            before = None if "reasoningContent" in block else index
        elif before is not None:
            found[message, before] = _mark(block["cachePoint"])

    return found


def _mark(point: Mapping[str, Any]) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": "ephemeral"}
    if point.get("ttl"):
        mark["ttl"] = point["ttl"]

    return mark
