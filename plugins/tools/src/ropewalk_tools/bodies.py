"""Runs the four kinds of function that can be a tool."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final, Literal

from ropewalk.kits.aio.threads import in_thread
from ropewalk.tools import ToolCall

Kind = Literal["coroutine", "generator", "plain"]
_NOTHING: Final = object()


def kind_of(function: Callable[..., Any]) -> Kind:
    """How a function is to be run: awaited, iterated, or run in a thread."""
    if inspect.iscoroutinefunction(function):
        return "coroutine"

    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        return "generator"

    return "plain"


async def run_body(
    kind: Kind, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], call: ToolCall
) -> Any:
    """The value that the function comes to. A generator's items are emitted, and the last one is the value.

    A plain function may hand back something to await or to iterate, as a decorator around an async function does.
    """
    if kind == "coroutine":
        value = await function(*args, **kwargs)
    elif kind == "generator":
        value = function(*args, **kwargs)
    else:
        value = await in_thread(functools.partial(function, *args, **kwargs))
        if inspect.isawaitable(value):
            value = await value

    if isinstance(value, types.AsyncGeneratorType):
        return await _last_of_async(value, call)

    if isinstance(value, types.GeneratorType):
        return await _last_of_sync(value, call)

    return value


async def _last_of_async(items: AsyncGenerator[Any, None], call: ToolCall) -> Any:
    last = _NOTHING
    async with contextlib.aclosing(items):
        async for item in items:
            last = item
            call.emit(item)

    return _some(last)


async def _last_of_sync(items: Generator[Any, None, Any], call: ToolCall) -> Any:
    abandoned = threading.Event()

    def drain() -> Any:
        last = _NOTHING
        with contextlib.closing(items):
            while not abandoned.is_set():
                try:
                    last = next(items)
                except StopIteration as done:
                    return last if done.value is None else done.value

                if not abandoned.is_set():
                    call.emit(last)

        return last

    try:
        return _some(await in_thread(drain))
    finally:
        abandoned.set()  # a cancelled run: the thread stops after its current item


def _some(last: Any) -> Any:
    if last is _NOTHING:
        raise ValueError("the tool's generator ended without an item, so there is no result: yield at least one")

    return last
