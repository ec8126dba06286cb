"""The words a script is written in: blocks, and turns with their faults."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ropewalk.model import ModelRequest
from ropewalk.types import ContentBlock, Usage
from ropewalk_testing.errors import ScriptError

Stall: TypeAlias = float | bool | asyncio.Event | threading.Event
"""How long a model stays silent: seconds, until an event is set, or True for "until `model.release()`"."""

DEFAULT_USAGE = (10, 5)
"""Input and output tokens of a turn that does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One scripted answer; made by `turn(...)`."""

    blocks: tuple[ContentBlock, ...] = ()
    stop: str | None = None
    usage: Usage | tuple[int, int] | None = DEFAULT_USAGE
    error: BaseException | None = None
    cut: bool = False
    stall: Stall | None = None
    stall_first: bool = False
    deltas: int = 1
    interleave: bool = False
    raw: tuple[Any, ...] | None = None


PlainTurn: TypeAlias = str | ContentBlock | Sequence[str | ContentBlock] | BaseException | Turn
"""A turn as it may be written: a text, a block, several of them, an error, or `turn(...)`."""

TurnMaker: TypeAlias = Callable[[ModelRequest], PlainTurn | Awaitable[PlainTurn]]
"""Decides the turn when the request is there."""


def text(value: str) -> ContentBlock:
    """A text block."""
    return {"text": value}


def reasoning(value: str, signature: str | None = None) -> ContentBlock:
    """A block of thinking, with the provider's signature if given."""
    if signature is None:
        return {"reasoningContent": {"reasoningText": {"text": value}}}

    return {"reasoningContent": {"reasoningText": {"text": value, "signature": signature}}}


def use(name: str, input: Any = None, id: str | None = None) -> ContentBlock:  # noqa: A002 - the keys of the block
    """A tool use.

    Args:
        name: The tool the model asks for.
        input: Its arguments, default `{}`. A string is streamed as it is, so that it need not be JSON.
        id: The tool-use id. Without one each time the turn is played gets its own: `use_<call>_<block>`.

    Returns:
        The block.
    """
    block: dict[str, Any] = {"name": name, "input": {} if input is None else input}
    if id is not None:
        block["toolUseId"] = id

    return cast("ContentBlock", {"toolUse": block})


def turn(
    *blocks: str | ContentBlock,
    stop: str | None = None,
    usage: Usage | tuple[int, int] | None = DEFAULT_USAGE,
    error: BaseException | None = None,
    cut: bool = False,
    stall: Stall | None = None,
    stall_first: bool = False,
    deltas: int = 1,
    interleave: bool = False,
    raw: Sequence[Any] | None = None,
) -> Turn:
    """One answer of a `ScriptedModel`, with the ways it can go wrong.

    Args:
        blocks: What the model says, in order; a string is a text block.
        stop: The stop reason; by default `"tool_use"` if there is a tool use among the blocks, else `"end_turn"`.
        usage: Input and output tokens, a full usage dict, or None to leave the metadata event out.
        error: Raised after the blocks, before the stream says that it is complete.
        cut: The stream ends after the blocks, without an error, a `messageStop` or metadata.
        stall: Silence: seconds, an `asyncio.Event` or `threading.Event` to wait for, or True to wait for
            `model.release()`. It comes after the blocks, or before everything when there are none.
        stall_first: The silence comes before everything in any case.
        deltas: In how many pieces each text, thought and tool input is streamed.
        interleave: The blocks' pieces are streamed in turns, not block after block.
        raw: The stream's events themselves, malformed on purpose or not, in place of blocks.

    Returns:
        The turn, for a script.

    Raises:
        ScriptError: The arguments contradict each other.
    """
    if raw is not None and (blocks or stop or cut):
        raise ScriptError("turn(raw=...) gives the whole stream: leave out the blocks, stop= and cut=")
    if cut and error is not None:
        raise ScriptError("turn(cut=True) ends the stream in silence and error= with an exception: give one of them")
    if deltas < 1:
        raise ScriptError(f"turn(deltas={deltas}): a text is streamed in at least 1 piece")

    return Turn(
        blocks=as_blocks(blocks),
        stop=stop,
        usage=usage,
        error=error,
        cut=cut,
        stall=stall,
        stall_first=stall_first,
        deltas=deltas,
        interleave=interleave,
        raw=None if raw is None else tuple(raw),
    )


def as_turn(value: Any) -> Turn:
    """Turns what a script may hold into a `Turn`.

    Raises:
        ScriptError: It is no turn.
    """
    if isinstance(value, Turn):
        return value
    if isinstance(value, BaseException):
        return Turn(error=value)
    if isinstance(value, (str, dict)):
        return Turn(blocks=as_blocks([value]))
    if isinstance(value, (list, tuple)):
        return Turn(blocks=as_blocks(value))

    raise ScriptError(
        f"{value!r} is no turn of a script: give a text, a block (text(...), use(...)), a list of them, an exception, "
        "or turn(...)"
    )


def as_blocks(values: Sequence[Any]) -> tuple[ContentBlock, ...]:
    """Turns strings and blocks into blocks.

    Raises:
        ScriptError: One of them is neither.
    """
    return tuple(_as_block(value) for value in values)


def _as_block(value: Any) -> ContentBlock:
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict) and len(value) == 1:
        return cast("ContentBlock", value)

    raise ScriptError(
        f"{value!r} is no content block: give a text, or a dict with one key such as text(...) or use(...)"
    )
