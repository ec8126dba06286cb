"""When a failed model call is repeated, and after how long. The strategy is the plugin itself."""

from __future__ import annotations

import logging
import math
import random
from typing import Any, Final, NoReturn, final

import pydantic

from ropewalk import Failure, hookimpl
from ropewalk_retry.transient import is_transient

logger = logging.getLogger("ropewalk.retry")

MAX_ATTEMPTS: Final = 6
INITIAL_DELAY: Final = 4.0
MAX_DELAY: Final = 240.0
JITTER: Final = 0.1
_MOST_DOUBLINGS: Final = 64


class ModelRetryStrategy:
    """Repeats model calls that failed for a reason that may pass, after 4, 8, 16 ... seconds.

    The n-th wait is `initial_delay * 2 ** (n - 1)` seconds, at most `max_delay`, shortened by a random share of up to
    `jitter`, so that many agents do not come back at once. A provider that says how long to wait (`retry_after` of the
    error) is obeyed instead: the wait is that long, or longer by up to `jitter`. If it asks for more than `max_delay`
    the error goes to the caller.

    The strategy has no state: it serves any number of agents. Subclass it and override `is_retryable` to repeat other
    errors.

    Args:
        max_attempts: Attempts at one model turn in all, at least 1; 1 is never to repeat. Attempts that a hook asked
            for count too.
        initial_delay: Seconds before the second attempt.
        max_delay: The longest wait, in seconds.
        jitter: From 0 (none) to 1.

    Raises:
        ValueError: One of the values is not a number of that kind.
    """

    name = "retry"

    def __init__(
        self,
        max_attempts: int = MAX_ATTEMPTS,
        initial_delay: float = INITIAL_DELAY,
        max_delay: float = MAX_DELAY,
        jitter: float = JITTER,
    ) -> None:
        if type(max_attempts) is not int or max_attempts < 1:
            raise ValueError(
                f"ModelRetryStrategy: max_attempts={max_attempts!r}: give a whole number of at least 1 "
                "(1 is never to repeat a call)"
            )

        self.max_attempts: Final = max_attempts
        self.initial_delay: Final = _checked("initial_delay", initial_delay)
        self.max_delay: Final = _checked("max_delay", max_delay)
        self.jitter: Final = _checked("jitter", jitter)
        if self.jitter > 1:
            raise ValueError(f"ModelRetryStrategy: jitter={jitter!r}: give a share of the delay, from 0 to 1")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(max_attempts={self.max_attempts}, initial_delay={self.initial_delay:g}, "
            f"max_delay={self.max_delay:g}, jitter={self.jitter:g})"
        )

    def is_retryable(self, error: Exception) -> bool:
        """Whether the same call may succeed later: override it to repeat other errors. See `is_transient`."""
        return is_transient(error)

    @hookimpl
    async def decide_retry(self, failure: Failure) -> float | None:
        """Names the seconds until the next attempt, or None to give up."""
        error = failure.error
        if not self.is_retryable(error):
            return None

        if failure.attempt >= self.max_attempts:
            if failure.attempt > 1:
                _note(error, f"the model call was given up after {failure.attempt} attempts")

            return None

        delay = self._delay(failure)
        if delay is not None:
            logger.info("attempt %d failed (%s); the next one in %.1f s", failure.attempt, type(error).__name__, delay)

        return delay

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> NoReturn:
        """Refuses what is no strategy: a strategy is a plugin, which nobody is asked to adopt.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            f"{parameter}={value!r} is no retry strategy: give ModelRetryStrategy(max_attempts=..., initial_delay=..., "
            "max_delay=...), a plugin with decide_retry, or None for no repetition"
        )

    def _delay(self, failure: Failure) -> float | None:
        chance = random.random() * self.jitter  # noqa: S311 - spreads load, guards nothing
        asked = _asked(failure.error)
        if asked is None:
            doubled = self.initial_delay * 2.0 ** min(failure.attempt - 1, _MOST_DOUBLINGS)
            return min(doubled, self.max_delay) * (1 - chance)

        if asked <= self.max_delay:
            return min(asked * (1 + chance), self.max_delay)

        longest = f"max_delay={self.max_delay:g} of the retry strategy"
        _note(failure.error, f"the provider asks to wait {asked:g} s, longer than {longest}: the call was given up")
        return None


@final
class RetryPlugin(ModelRetryStrategy):
    """What runs when no `retry_strategy` is given: the default strategy, with options from file or environment."""

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `ModelRetryStrategy`."""

        max_attempts: int = pydantic.Field(default=MAX_ATTEMPTS, ge=1)
        initial_delay: float = pydantic.Field(default=INITIAL_DELAY, ge=0, allow_inf_nan=False)
        max_delay: float = pydantic.Field(default=MAX_DELAY, ge=0, allow_inf_nan=False)
        jitter: float = pydantic.Field(default=JITTER, ge=0, le=1)

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        super().__init__(chosen.max_attempts, chosen.initial_delay, chosen.max_delay, chosen.jitter)


def _checked(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"ModelRetryStrategy: {name}={value!r}: give a number of at least 0")

    return float(value)


def _asked(error: Any) -> float | None:
    """The seconds that the provider asks to wait, if it says a number that can be one."""
    asked = getattr(error, "retry_after", None)
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not math.isfinite(asked) or asked < 0:
        return None

    return float(asked)


def _note(error: Exception, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):  # one error object may be raised many times
        error.add_note(note)
