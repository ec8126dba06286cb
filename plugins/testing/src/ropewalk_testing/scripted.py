"""A model that plays a script."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ropewalk_testing.errors import ScriptError, ScriptExhausted
from ropewalk_testing.streams import Stream
from ropewalk_testing.turns import PlainTurn, Stall, TurnMaker, as_turn

if TYPE_CHECKING:
    from ropewalk.model import ModelRequest
    from ropewalk.types import StreamEvent

POLL_SECONDS = 0.005
"""How often a stall looks at something that cannot be awaited: a `threading.Event`, or the model's release."""


class ScriptedModel:
    """Answers with the turns of a script, one per call, whoever calls.

    Counters and script are safe to use from many threads and event loops at once. The events of a turn are built once
    and shared by all calls that play it: do not write to them.

    Attributes:
        requests: A plain copy of each request, in the order of the calls; empty with `record=False`.
        stalled: A `threading.Event`, set when a stall begins; the model never clears it.
        context_window: Tokens, or None; may be set at any time.
    """

    model_id = "scripted"

    def __init__(
        self,
        script: Iterable[PlainTurn | TurnMaker] | TurnMaker,
        *,
        record: bool = True,
        context_window: int | None = None,
        count_tokens: int | Callable[[ModelRequest], int] | None = None,
    ) -> None:
        """Reads the script.

        Args:
            script: Turns (see `turn`), or callables `(request) -> turn` among them. A sequence is built at once; any
                other iterable is read as calls are made, so it may be endless. One callable alone answers every call.
            record: Whether `requests` is kept. Turn it off in benchmarks: it copies each request.
            context_window: What the model claims to have, in tokens.
            count_tokens: What the model counts for a request: a fixed number or a function. Without it the model has no
                `count_tokens`, and callers estimate.

        Raises:
            ScriptError: The script holds something that is no turn.
        """
        self.requests: list[ModelRequest] = []
        self.stalled = threading.Event()
        self.context_window = context_window
        if count_tokens is not None:
            self.count_tokens = count_tokens if callable(count_tokens) else _fixed(count_tokens)

        self._record = record
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._calls = self._active = self._aborted = 0
        self._built: dict[int, tuple[Any, Stream]] = {}
        self._queue: list[Stream | TurnMaker] = []
        self._endless: TurnMaker | None = None
        self._lazy: Iterator[PlainTurn | TurnMaker] | None = None
        self._read(script)

    # -- what happened ---------------------------------------------------------------------------------------------

    @property
    def calls(self) -> int:
        """How many times the model was called."""
        return self._calls

    @property
    def active(self) -> int:
        """How many streams are open now."""
        return self._active

    @property
    def aborted(self) -> int:
        """How many streams were closed or cancelled before their end."""
        return self._aborted

    @property
    def last_request(self) -> ModelRequest:
        """The copy of the latest request.

        Raises:
            ScriptError: There is none.
        """
        if not self.requests:
            raise ScriptError("this ScriptedModel has no request to show: it was not called, or has record=False")

        return self.requests[-1]

    def __repr__(self) -> str:
        """Says how far the script has got."""
        known = self._endless is None and self._lazy is None
        return f"<ScriptedModel: {self._calls} calls{f' of {len(self._queue)} turns' if known else ''}>"

    # -- steering --------------------------------------------------------------------------------------------------

    def add(self, *turns: PlainTurn | TurnMaker) -> None:
        """Adds turns at the end of the script."""
        entries = [self._entry(each) for each in turns]
        with self._lock:
            self._queue.extend(entries)

    def release(self) -> None:
        """Ends every stall, those under way and those to come."""
        self._released.set()

    async def wait_stalled(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - a bound for tests, not a policy
        """Waits until the model has fallen silent.

        Raises:
            TimeoutError: It did not, within `timeout` seconds.
        """
        for _ in range(max(1, int(timeout / POLL_SECONDS))):
            if self.stalled.is_set():
                return

            await asyncio.sleep(POLL_SECONDS)

        raise TimeoutError(f"{self!r} did not stall within {timeout} seconds")

    # -- the model -------------------------------------------------------------------------------------------------

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Plays the next turn.

        Raises:
            ScriptExhausted: There is none.
        """
        call, entry = self._next(request)
        aborted = False
        try:
            played = entry if isinstance(entry, Stream) else await _made(entry, request)
            turn = played.turn
            if turn.stall is not None and played.silent_first:
                await self._stall(turn.stall)

            for event in played.named(call):
                yield event

            if turn.stall is not None and not played.silent_first:
                await self._stall(turn.stall)
            if turn.error is not None:
                # One exception object may be played many times: its traceback must not pile up. And this frame must
                # not refer to it, or the agent, which the traceback's frames refer to, would wait for the collector.
                error = turn.error.with_traceback(None)
                del played, turn, entry
                try:
                    raise error
                finally:
                    del error

            for event in played.tail:
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            aborted = True
            raise
        finally:
            self._ended(aborted=aborted)

    async def _stall(self, stall: Stall) -> None:
        self.stalled.set()
        if isinstance(stall, (int, float)) and not isinstance(stall, bool):
            if not self._released.is_set():
                await asyncio.sleep(stall)

            return

        until = self._released if isinstance(stall, bool) else stall
        # Polled: events of threads and of other event loops cannot be awaited.
        while not (self._released.is_set() or until.is_set()):  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)

    # -- the script ------------------------------------------------------------------------------------------------

    def _read(self, script: Any) -> None:
        if callable(script):
            self._endless = script
        elif isinstance(script, (str, bytes, Mapping, BaseException)) or not isinstance(script, Iterable):
            raise ScriptError(f"{script!r} is no script: a script is a list of turns, such as ScriptedModel(['hello'])")
        elif isinstance(script, Sequence):
            self._queue.extend(self._entry(each) for each in script)
        else:
            self._lazy = iter(script)

    def _entry(self, value: Any) -> Stream | TurnMaker:
        if callable(value) and not isinstance(value, BaseException):
            return cast("TurnMaker", value)

        known = self._built.get(id(value))  # `[use("add")] * 10_000` is one object, built once
        if known is None:
            known = self._built[id(value)] = (value, Stream(as_turn(value)))

        return known[1]

    def _next(self, request: ModelRequest) -> tuple[int, Stream | TurnMaker]:
        copied = plain_copy(request) if self._record else None
        with self._lock:
            entry = self._take()
            self._calls += 1
            self._active += 1
            if copied is not None:
                self.requests.append(copied)

            return self._calls, entry

    def _take(self) -> Stream | TurnMaker:
        if self._calls < len(self._queue):
            return self._queue[self._calls]
        if self._endless is not None:
            return self._endless
        if self._lazy is not None:
            return self._pull(self._lazy)

        raise ScriptExhausted(len(self._queue))

    def _pull(self, lazy: Iterator[Any]) -> Stream | TurnMaker:
        for value in lazy:
            entry = self._entry(value)
            self._queue.append(entry)
            return entry

        raise ScriptExhausted(len(self._queue))

    def _ended(self, *, aborted: bool) -> None:
        with self._lock:
            self._active -= 1
            self._aborted += aborted


async def _made(maker: TurnMaker, request: ModelRequest) -> Stream:
    made = maker(request)
    if inspect.isawaitable(made):
        made = await made

    return Stream(as_turn(made))


def _fixed(count: int) -> Callable[[ModelRequest], int]:
    return lambda _request: count


def plain_copy(request: ModelRequest) -> ModelRequest:
    """A copy of a request that later edits of the conversation cannot change; `invocation_state` stays by reference."""
    return replace(
        request,
        messages=_plain(request.messages),
        system=tuple(_plain(request.system)),
        tool_specs=tuple(_plain(request.tool_specs)),
        tool_choice=_plain(request.tool_choice),
        output_schema=_plain(request.output_schema),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(each) for each in value]

    return value
