"""Turns a scripted turn into the stream events that a provider would send."""

from __future__ import annotations

import json
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ropewalk_testing.errors import ScriptError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropewalk.types import ContentBlock, StreamEvent, Usage
    from ropewalk_testing.turns import Turn


class Stream:
    """A turn's events, built once and shared by every call that plays the turn.

    Attributes:
        events: What is streamed first.
        silent_first: Whether a silence comes before everything else, not after the events.
        tail: What follows unless there is an error: `messageStop` and metadata.
        unnamed: Places in `events` of tool uses that get an id of their own at each call.
        turn: Where all this came from.
    """

    __slots__ = ("events", "silent_first", "tail", "turn", "unnamed")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.silent_first = turn.stall_first or not (turn.blocks or turn.raw)
        self.events: tuple[StreamEvent, ...] = tuple(_events(turn))
        self.tail: tuple[StreamEvent, ...] = tuple(_tail(turn))
        self.unnamed = tuple(i for i, event in enumerate(self.events) if turn.raw is None and _lacks_id(event))

    def named(self, call: int) -> tuple[StreamEvent, ...]:
        """The events of one call, every tool use with an id."""
        if not self.unnamed:
            return self.events

        events = list(self.events)
        for place in self.unnamed:
            start = events[place]["contentBlockStart"]
            index = start["contentBlockIndex"]
            tool_use = {"toolUseId": f"use_{call}_{index}", **start["start"]["toolUse"]}
            events[place] = {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": tool_use}}}

        return tuple(events)


def _lacks_id(event: StreamEvent) -> bool:
    start = event.get("contentBlockStart", {}).get("start", {})
    return "toolUse" in start and "toolUseId" not in start["toolUse"]


def _events(turn: Turn) -> Iterator[StreamEvent]:
    if turn.raw is not None:
        yield from turn.raw
        return
    if not turn.blocks and (turn.error is not None or turn.cut):
        return  # it ends before the stream opens

    yield {"messageStart": {"role": "assistant"}}
    blocks = [_block_events(index, block, turn.deltas) for index, block in enumerate(turn.blocks)]
    for event in chain.from_iterable(zip_longest(*blocks) if turn.interleave else blocks):
        if event is not None:  # a block that had fewer pieces than another
            yield event


def _block_events(index: int, block: ContentBlock, pieces: int) -> Iterator[StreamEvent]:
    yield {"contentBlockStart": {"contentBlockIndex": index, "start": _start(block)}}
    for delta in _deltas(block, pieces):
        yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}

    yield {"contentBlockStop": {"contentBlockIndex": index}}


def _tail(turn: Turn) -> Iterator[StreamEvent]:
    if turn.cut or turn.error is not None or turn.raw is not None:
        return

    asks = any("toolUse" in block for block in turn.blocks)
    yield {"messageStop": {"stopReason": turn.stop or ("tool_use" if asks else "end_turn")}}
    if turn.usage is not None:
        yield {"metadata": {"usage": _usage(turn.usage), "metrics": {"latencyMs": 0}}}


def _usage(usage: Usage | tuple[int, int]) -> Usage:
    if isinstance(usage, tuple):
        tokens_in, tokens_out = usage
        return {"inputTokens": tokens_in, "outputTokens": tokens_out, "totalTokens": tokens_in + tokens_out}

    return usage


def _start(block: ContentBlock) -> dict[str, Any]:
    if "toolUse" in block:
        return {"toolUse": {key: value for key, value in block["toolUse"].items() if key != "input"}}

    return {}


def _deltas(block: ContentBlock, pieces: int) -> Iterator[dict[str, Any]]:
    if "text" in block:
        yield from ({"text": piece} for piece in _split(block["text"], pieces))
    elif "toolUse" in block:
        arguments: Any = block["toolUse"]["input"]
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield from ({"toolUse": {"input": piece}} for piece in _split(given, pieces))
    elif "reasoningContent" in block:
        yield from ({"reasoningContent": piece} for piece in _thoughts(block["reasoningContent"], pieces))
    elif "citationsContent" in block:
        content = block["citationsContent"]
        for part in content.get("content", ()):
            yield from ({"text": piece} for piece in _split(part["text"], pieces))

        yield from ({"citation": citation} for citation in content.get("citations", ()))
    else:
        raise ScriptError(
            f"a block of the kind {next(iter(block))} has no form in a model's stream: a scripted turn can hold text, "
            "toolUse, reasoningContent and citationsContent (or give the events with turn(raw=[...]))"
        )


def _thoughts(content: Any, pieces: int) -> Iterator[dict[str, Any]]:
    if "redactedContent" in content:
        yield {"redactedContent": content["redactedContent"]}
        return

    thought = content["reasoningText"]
    yield from ({"text": piece} for piece in _split(thought["text"], pieces))
    if "signature" in thought:
        yield {"signature": thought["signature"]}


def _split(value: str, pieces: int) -> list[str]:
    """Cuts into `pieces` parts of nearly equal length, none of them empty."""
    pieces = min(pieces, len(value))
    if pieces <= 1:
        return [value] if value else []

    return [value[i * len(value) // pieces : (i + 1) * len(value) // pieces] for i in range(pieces)]
