"""Runs a coroutine in a context of its own, without a task.

A tool's writes to context variables must not show in its siblings. A task would do, and costs ten times as much.
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Isolated(Awaitable[T]):
    """Awaits `coroutine` step by step inside a copy of the current context."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        run = contextvars.copy_context().run
        coroutine = self._coroutine
        step: Callable[[Any], Any] = coroutine.send
        value: Any = None
        waiting: Any = None
        while True:
            # Nothing is kept in a local while the coroutine runs: an error's own frames must not refer to it.
            act, argument, step, value, waiting = step, value, coroutine.send, None, None
            try:
                waiting = run(act, argument)
            except StopIteration as done:
                return cast("T", done.value)
            finally:
                argument = None

            try:
                value = yield waiting
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the coroutine, as a task would
                step, value = coroutine.throw, error
