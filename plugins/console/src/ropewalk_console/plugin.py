"""The plugins behind `Agent(callback_handler=...)`."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from ropewalk import hookimpl
from ropewalk.errors import PluginError
from ropewalk.kits.events import (
    AttemptDiscarded,
    Delta,
    RawDelta,
    ReasoningDelta,
    RunEnded,
    RunFailed,
    TextDelta,
    ToolStreamed,
)
from ropewalk.kits.hooks.adoption import InvalidParameterError
from ropewalk_console.handlers import HINT, CallbackHandler, is_async, null_callback_handler, started_tool
from ropewalk_console.output import discarded_line, tool_line, write

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.events import Event


class ConsolePlugin:
    """Prints what agents say, think and use. Active when nothing else is said."""

    name = "console"

    def __init__(self) -> None:
        self._tool_counts: WeakKeyDictionary[Agent, int] = WeakKeyDictionary()
        self._in_line: WeakSet[Agent] = WeakSet()  # those whose last printed piece has not ended its line

    @hookimpl
    def on_delta(self, event: Event, agent: Agent) -> None:
        """Prints a streamed piece."""
        if isinstance(event, TextDelta):
            self._print(event.text, agent)
        elif isinstance(event, ReasoningDelta):
            self._print(event.delta["reasoningContent"].get("text"), agent)
        elif isinstance(event, RawDelta) and (name := started_tool(event.raw)):
            number = self._tool_counts[agent] = self._tool_counts.get(agent, 0) + 1
            self._print(tool_line(number, name), agent)

    @hookimpl
    async def on_event(self, event: Event, agent: Agent) -> None:
        """Says so when what was printed does not count, and ends the line at the end of the run."""
        if isinstance(event, AttemptDiscarded):
            self._print(discarded_line(event.reason), agent)
        elif isinstance(event, RunEnded | RunFailed) and agent in self._in_line:
            self._print("\n", agent)

    def _print(self, text: str | None, agent: Agent) -> None:
        if not text:
            return

        write(text)
        if text.endswith("\n"):
            self._in_line.discard(agent)
        else:
            self._in_line.add(agent)

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Any:
        """Makes the plugin that calls the user's handler, in the place of this one.

        Raises:
            InvalidParameterError: The value cannot be called.
        """
        if parameter != "callback_handler":
            return None
        if value is None or value is null_callback_handler:
            return SilentPlugin()
        if not callable(value) or isinstance(value, type):
            raise InvalidParameterError(f"Agent(callback_handler={value!r}): {HINT}; None is silent")

        return CallbackPlugin(value)


class SilentPlugin:
    """Takes the console's place and does nothing during runs."""

    name = "console"

    @hookimpl
    def on_agent_ready(self) -> None:
        """Nothing; a plugin has at least one hook, and this one costs no run anything."""


class CallbackPlugin:
    """Calls a handler with each event, in the order in which `stream_async` yields them.

    A synchronous handler is called while the event happens. An asynchronous one gets the same events in the same order;
    streamed pieces wait for the next boundary (message complete, tools about to run, end), where it is awaited. What
    a handler raises ends the run and reaches the caller; for an intermediate value of a tool, at the next boundary.
    """

    name = "console"

    def __init__(self, handler: CallbackHandler) -> None:
        self._handler = handler
        self._async = is_async(handler)
        self._waiting: WeakKeyDictionary[Agent, deque[Event]] = WeakKeyDictionary()
        self._failed: WeakKeyDictionary[Agent, Exception] = WeakKeyDictionary()

    @hookimpl
    def on_delta(self, event: Event, agent: Agent) -> None:
        """Hands a streamed piece on, or keeps it until it can be awaited."""
        if self._async:
            self._waiting.setdefault(agent, deque()).append(event)
            return

        try:
            self._send_now(event)
        except Exception as error:
            if not isinstance(event, ToolStreamed):
                raise

            # The tool is the caller here, or nobody is (a thread): it must not take the error for one of its own.
            self._failed.setdefault(agent, error)

    @hookimpl
    async def on_event(self, event: Event, agent: Agent) -> None:
        """Hands on what waits, then the event."""
        if self._async:
            waiting = self._waiting.pop(agent, ())
            for piece in waiting:
                await self._send(piece)

        failed = self._failed.pop(agent, None)
        if failed is not None:
            raise failed

        await self._send(event)

    def _send_now(self, event: Event) -> None:
        for each in _dicts(event):
            answer = self._handler(**each)
            if inspect.isawaitable(answer):
                _close(answer)
                raise PluginError(
                    f"the callback handler {self._handler!r} returned an awaitable for a streamed piece: declare it "
                    "with `async def`, and it is awaited at the next boundary"
                )

    async def _send(self, event: Event) -> None:
        for each in _dicts(event):
            answer = self._handler(**each)
            if inspect.isawaitable(answer):
                await answer


def _dicts(event: Event) -> Iterator[dict[str, Any]]:
    """The forms of one event: a piece with content is preceded by the provider's event, as in `stream_async`."""
    if isinstance(event, Delta) and not isinstance(event, RawDelta):
        yield {"event": event.raw}

    yield event.as_dict()


def _close(answer: Any) -> None:
    """Ends a coroutine that nobody will await, so that it does not warn about that as well."""
    if inspect.iscoroutine(answer):
        answer.close()
