"""What the agents of this process have used of one model in the last minute, and who waits for more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ropewalk.kits.aio.seam import current_seam

if TYPE_CHECKING:
    from ropewalk_rate_limit.rate import Rate

MINUTE: Final = 60.0
_LOOK_SECONDS: Final = 5.0  # those behind find out by themselves that the event loop of the first has stopped


class Call:
    """A model call that has begun.

    Attributes:
        began: On the clock of the process, see `ropewalk.kits.aio.seam`.
        tokens: As estimated, and later as the model says.
        counted: Whether it is among those of the last minute.
    """

    __slots__ = ("began", "counted", "tokens")

    def __init__(self, began: float, tokens: int) -> None:
        self.began = began
        self.tokens = tokens
        self.counted = True


class Waiter:
    """A model call that waits for its turn, in whatever event loop it runs."""

    __slots__ = ("_changed", "_loop", "rate", "tokens")

    def __init__(self, rate: Rate, tokens: int) -> None:
        self.rate = rate
        self.tokens = tokens
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    @property
    def is_gone(self) -> bool:
        """Whether nobody can be waiting here any more."""
        return self._loop.is_closed()

    @property
    def can_go(self) -> bool:
        """Whether its event loop runs; one that stands still may go on later, and must not block others until then."""
        return self._loop.is_running()

    def wake(self) -> None:
        """Makes it look again. From any thread."""
        with contextlib.suppress(RuntimeError):  # its loop is closed: the next to come removes it
            self._loop.call_soon_threadsafe(self._changed.set)

    def look_away(self) -> None:
        """What happens from now on wakes it."""
        self._changed.clear()

    async def wait(self, seconds: float | None) -> None:
        """Waits until it is woken, or that long; a while when others are first."""
        if seconds is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()

            return

        waits: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(current_seam().sleep(seconds)),
            asyncio.ensure_future(self._changed.wait()),
        }
        try:
            ended, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

        for each in ended:
            each.result()  # a clock that fails would otherwise be asked again and again


class Account:
    """The calls of the last minute, and a queue. Safe to use from many threads and event loops."""

    __slots__ = ("_calls", "_lock", "_queue", "_tokens")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[Call] = deque()
        self._tokens = 0
        self._queue: deque[Waiter] = deque()

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._queue)

    async def begin(self, rate: Rate, tokens: int) -> Call:
        """Counts a call, when its turn has come.

        Args:
            rate: What is allowed to this call; what others have used counts.
            tokens: As estimated; not more than is allowed.
        """
        waiter = Waiter(rate, tokens)
        with self._lock:
            self._wake_first()
            self._queue.append(waiter)

        try:
            while True:
                waiter.look_away()
                call, seconds = self._try(waiter)
                if call is not None:
                    return call

                await waiter.wait(seconds)
        except BaseException:
            self._leave(waiter)
            raise

    def correct(self, call: Call, tokens: int) -> None:
        """Replaces the estimate of a call by what it has used."""
        with self._lock:
            if call.counted:
                self._tokens += tokens - call.tokens

            fewer = tokens < call.tokens
            call.tokens = tokens
            if fewer:
                self._wake_first()

    def _try(self, waiter: Waiter) -> tuple[Call | None, float | None]:
        """The call, or the seconds to wait; neither when others are first."""
        with self._lock:
            if self._first() is not waiter:
                return None, None

            now = current_seam().monotonic()
            seconds = self._seconds(waiter, now)
            if seconds > 0:
                return None, seconds

            self._queue.remove(waiter)
            self._wake_first()
            call = Call(now, waiter.tokens)
            self._calls.append(call)
            self._tokens += waiter.tokens
            return call, None

    def _leave(self, waiter: Waiter) -> None:
        with self._lock:
            if waiter in self._queue:
                self._queue.remove(waiter)
                self._wake_first()

    def _first(self) -> Waiter | None:
        return next((waiter for waiter in self._queue if waiter.can_go), None)

    def _wake_first(self) -> None:
        self._forget_the_gone()
        first = self._first()
        if first is not None:
            first.wake()

    def _forget_the_gone(self) -> None:
        """Removes those at the head whose event loop was closed under them: nobody waits there any more."""
        while self._queue and self._queue[0].is_gone:
            self._queue.popleft()

    def _seconds(self, waiter: Waiter, now: float) -> float:
        """How long until the call fits in."""
        calls, rate = self._calls, waiter.rate
        while calls and calls[0].began + MINUTE <= now:
            old = calls.popleft()
            old.counted = False
            self._tokens -= old.tokens

        until = now
        if rate.requests_per_minute is not None and len(calls) >= rate.requests_per_minute:
            until = calls[len(calls) - rate.requests_per_minute].began + MINUTE

        if rate.tokens_per_minute is not None:
            left = self._tokens
            for call in calls:
                if left + waiter.tokens <= rate.tokens_per_minute:
                    break

                left -= call.tokens
                until = max(until, call.began + MINUTE)

        return until - now
