"""What context management costs: reducing a long history, and counting a new turn. Run it as a script."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from ropewalk import Agent, ContextWindowOverflowException, SlidingWindowConversationManager
from ropewalk.kits.messages.tokens import TokenCount
from ropewalk_testing import ScriptedModel

ROUNDS = 7


def chat(count: int, size: int = 400) -> list[Any]:
    """A conversation with tool turns of `size` characters."""
    messages: list[Any] = [{"role": "user", "content": [{"text": "the task"}]}]
    while len(messages) < count:
        name = f"t{len(messages)}"
        use = {"toolUse": {"toolUseId": name, "name": "look", "input": {"n": 1}}}
        result = {"toolResult": {"toolUseId": name, "status": "success", "content": [{"text": "x" * size}]}}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    return messages[:count]


def seconds(prepare: Callable[[], Callable[[], object]]) -> float:
    """The median time of a call, prepared anew each time."""
    times = []
    for _ in range(ROUNDS):
        call = prepare()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)

    return statistics.median(times)


def reduced(length: int, script: list[Any], window: int, size: int = 400) -> Callable[[], Callable[[], object]]:
    """A run on a long history whose window has to do something."""

    def prepare() -> Callable[[], object]:
        agent = Agent(
            model=ScriptedModel(script, record=False),
            messages=chat(length, size),
            callback_handler=None,
            conversation_manager=SlidingWindowConversationManager(window),
        )
        agent.history.digest()
        return lambda: agent("more")

    return prepare


def counted(length: int) -> Callable[[], Callable[[], object]]:
    """The count of a turn that is new in a long history."""

    def prepare() -> Callable[[], object]:
        messages, count = chat(length), TokenCount()
        count.of(messages, 0, lambda: 100)
        messages += chat(3)[1:]
        return lambda: count.of(messages, 0, lambda: 100)

    return prepare


def main() -> None:
    """Prints a table."""
    rows = []
    for length in (100, 1_000, 10_000):
        overflow = [ContextWindowOverflowException("too long"), "done"]
        rows.append((f"{length:>6} messages, nothing to do", reduced(length, ["done"], length + 10)))
        rows.append((f"{length:>6} messages, cut to 40", reduced(length, ["done"], 40)))
        rows.append((f"{length:>6} messages, results shortened", reduced(length, overflow, length + 10, 2_000)))
        rows.append((f"{length:>6} messages, a new turn counted", counted(length)))

    for name, prepare in rows:
        sys.stdout.write(f"{name:40} {seconds(prepare) * 1e3:10.3f} ms\n")


if __name__ == "__main__":
    main()
