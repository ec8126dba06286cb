"""Callback handlers: callables that get each event as keywords."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ropewalk_console.output import discarded_line, tool_line, write

CallbackHandler: TypeAlias = Callable[..., Any]
"""Called as `handler(**event)`, with the dicts that `stream_async` yields."""


def null_callback_handler(**_event: Any) -> None:
    """Does nothing."""


class PrintingCallbackHandler:
    """Prints answer and thinking as they come, and a numbered line for each tool use.

    Attributes:
        tool_count: Tool uses seen so far; the next one gets the number after it.
    """

    def __init__(self, verbose_tool_use: bool = True) -> None:
        """Sets what is printed.

        Args:
            verbose_tool_use: Whether tool uses are announced.
        """
        self.tool_count = 0
        self._verbose_tool_use = verbose_tool_use
        self._in_line = False

    def __call__(self, **event: Any) -> None:
        """Prints what the event says, if anything."""
        if text := event.get("reasoningText") or event.get("data"):
            self._print(text)
        elif name := started_tool(event.get("event")):
            self.tool_count += 1
            if self._verbose_tool_use:
                self._print(tool_line(self.tool_count, name))
        elif discarded := event.get("attempt_discarded"):
            self._print(discarded_line(discarded["reason"]))
        elif self._in_line and ("result" in event or "force_stop" in event):
            self._print("\n")

    def _print(self, text: str) -> None:
        write(text)
        self._in_line = not text.endswith("\n")


class CompositeCallbackHandler:
    """Calls several handlers, in order. The first that raises ends the run; those after it are not called."""

    def __init__(self, *handlers: CallbackHandler) -> None:
        """Takes the handlers.

        Raises:
            TypeError: One of them cannot be called.
        """
        for handler in handlers:
            if not callable(handler) or isinstance(handler, type):
                raise TypeError(f"CompositeCallbackHandler({handler!r}): {HINT}")

        self.handlers = handlers
        self._any_async = any(is_async(handler) for handler in handlers)

    def __call__(self, **event: Any) -> Awaitable[None] | None:
        """Hands the event on; what is returned must be awaited when one of the handlers is asynchronous."""
        if self._any_async:
            return self._call_async(event)

        for handler in self.handlers:
            handler(**event)

        return None

    async def _call_async(self, event: dict[str, Any]) -> None:
        for handler in self.handlers:
            answer = handler(**event)
            if inspect.isawaitable(answer):
                await answer


HINT = "a callback handler is a function or an instance that takes events as keywords, such as `def show(**event): ...`"


def is_async(handler: CallbackHandler) -> bool:
    """Whether what the handler returns must be awaited."""
    if isinstance(handler, CompositeCallbackHandler):
        return any(is_async(each) for each in handler.handlers)

    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def started_tool(raw: dict[str, Any] | None) -> str | None:
    """The name in a stream event that opens a tool use; None for any other event."""
    if not raw or "contentBlockStart" not in raw:
        return None

    name: str | None = raw["contentBlockStart"].get("start", {}).get("toolUse", {}).get("name")
    return name
