"""Which cache points a request keeps, and where one is set for the caller.

A request may have four. A point is refused first in a message and after thinking, and two in a row are one. Points past
the fourth are dropped here, not at the provider: the caller's own in the last turn counts first, then those of the
tools and of the system prompt, then the newest of the conversation.
"""

from __future__ import annotations

from typing import Any, Final

from ropewalk_bedrock.settings import CacheConfig, CachePoint, CacheSetting

Block = dict[str, Any]

MOST_POINTS: Final = 4
_TAIL: Final = 2


def point_of(setting: CacheSetting | CacheConfig) -> Block:
    """The cache point that a setting asks for."""
    point: Block = {"type": "default"}
    if isinstance(setting, CachePoint | CacheConfig) and setting.ttl is not None:
        point["ttl"] = setting.ttl

    return {"cachePoint": point}


def set_tail(messages: list[Block], config: CacheConfig) -> None:
    """Sets a point at the end of the last two user turns, unless a turn has one of the caller's.

    The last one has the conversation written to the cache, the one before has it read: that is where the point of the
    request before stood. A tail that only moves would be written with each request and, by models that look no further
    than at the points, never read. What follows the caller's own point is his to change with every call, and a point
    after it would be of no use.
    """
    turns = [message for message in reversed(messages) if message["role"] == "user"]
    for message in turns[:_TAIL]:
        if not any("cachePoint" in block for block in message["content"]):
            message["content"].append(point_of(config))


def drop_misplaced(content: list[Block]) -> list[Block]:
    """The content without points that no provider takes: first, after thinking, or after another one."""
    kept: list[Block] = []
    for block in content:
        if "cachePoint" in block and (not kept or "reasoningContent" in kept[-1] or "cachePoint" in kept[-1]):
            continue

        kept.append(block)

    return kept


def limit(tools: list[Block], system: list[Block], messages: list[Block]) -> None:
    """Takes points out of the request's own lists until there are four."""
    in_tools, in_system = _points(tools), _points(system)
    in_turns = [_points(message["content"]) for message in messages]
    last = in_turns[-1] if in_turns else []
    earlier = [place for turn in reversed(in_turns[:-1]) for place in reversed(turn)]
    order = [*last[-1:], *in_tools[-1:], *in_system[-1:], *reversed(last[:-1]), *earlier]
    order += [*reversed(in_system[:-1]), *reversed(in_tools[:-1])]
    for blocks, point in order[MOST_POINTS:]:
        blocks[:] = [block for block in blocks if block is not point]


def _points(blocks: list[Block]) -> list[tuple[list[Block], Block]]:
    return [(blocks, block) for block in blocks if "cachePoint" in block]
