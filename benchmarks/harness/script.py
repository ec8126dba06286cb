"""What every framework is given: the same tools, and the same script for its fake model."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["async", "sync", "async_sleep", "sync_sleep"]

TOOL_SECONDS: Final = 0.010
UID: Final = itertools.count()
BODY: Final = "The quick brown fox jumps over the lazy dog while the agent looks up the answer to it. " * 2


class Calls:
    """Counts tool executions, so that every run proves that it did the work."""

    count: ClassVar = 0


def _async_tool() -> Callable[..., Any]:
    async def tool(x: int) -> str:  # noqa: ARG001 - as the model sends it
        """Look a number up.

        Args:
            x: the number
        """
        Calls.count += 1
        return "ok"

    return tool


def _sync_tool() -> Callable[..., Any]:
    def tool(x: int) -> str:  # noqa: ARG001 - as the model sends it
        """Look a number up.

        Args:
            x: the number
        """
        Calls.count += 1
        return "ok"

    return tool


def _async_sleep_tool() -> Callable[..., Any]:
    async def tool(x: int) -> str:  # noqa: ARG001 - as the model sends it
        """Look a number up.

        Args:
            x: the number
        """
        await asyncio.sleep(TOOL_SECONDS)
        Calls.count += 1
        return "ok"

    return tool


def _sync_sleep_tool() -> Callable[..., Any]:
    def tool(x: int) -> str:  # noqa: ARG001 - as the model sends it
        """Look a number up.

        Args:
            x: the number
        """
        time.sleep(TOOL_SECONDS)
        Calls.count += 1
        return "ok"

    return tool


_MAKERS: Final[dict[str, Callable[[], Callable[..., Any]]]] = {
    "async": _async_tool,
    "sync": _sync_tool,
    "async_sleep": _async_sleep_tool,
    "sync_sleep": _sync_sleep_tool,
}


def make_functions(count: int, kind: Kind) -> list[Callable[..., Any]]:
    """Plain functions named t0, t1 ... that each framework wraps in its own way."""
    functions = []
    for number in range(count):
        function = _MAKERS[kind]()
        function.__name__ = function.__qualname__ = f"t{number}"
        function.__annotations__ = {"x": int, "return": str}  # real types: not every framework resolves text
        functions.append(function)

    return functions


class Script:
    """What a fake model says: some turns with tool calls, then one text. Then it starts again.

    Attributes:
        cycles: Turns with tool calls.
        calls: Tool calls in each of them.
        deltas: Pieces of the final text, `"tok "` each.
        latency: Seconds before each turn.
    """

    __slots__ = ("_turn", "calls", "cycles", "deltas", "latency")

    def __init__(self, cycles: int = 1, calls: int = 1, deltas: int = 1, latency: float = 0.0) -> None:
        self.cycles = cycles
        self.calls = calls
        self.deltas = deltas
        self.latency = latency
        self._turn = 0

    async def wait(self) -> None:
        """Waits as long as the model takes to begin."""
        if self.latency:
            await asyncio.sleep(self.latency)

    def next(self) -> list[tuple[str, str, dict[str, int]]] | None:
        """The next turn: (id, name, arguments) of every tool call, or None for the final text."""
        if self._turn < self.cycles:
            self._turn += 1
            return [(f"call_{next(UID)}", "t0", {"x": number}) for number in range(self.calls)]

        self._turn = 0
        return None
