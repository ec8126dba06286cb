"""What a handler answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

_YES: Final = frozenset({"y", "yes"})


def default_evaluate(response: Any) -> bool:
    """Whether an answer is a yes: True, or the text `y` or `yes` in any spelling. Everything else is a no."""
    return response is True or (isinstance(response, str) and response.strip().casefold() in _YES)


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing to object to.

    Attributes:
        reason: For the log.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """What was about to happen does not; the later handlers are not asked.

    Attributes:
        reason: What the model, or the caller, is told.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Guide:
    """The model is told to do better. The feedback of all handlers is put together; a later Deny outweighs it.

    Attributes:
        feedback: What to do better.
    """

    feedback: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """Somebody has to agree to a tool call. With a response nobody is asked; without one the run pauses until it has.

    Attributes:
        prompt: The question; the reason of the interrupt.
        response: The answer, when it is known already; None asks for it.
        evaluate: Tells whether an answer is a yes; may be async. False, None, 0 and the empty text are answers too.
    """

    prompt: str
    response: Any = None
    evaluate: Callable[[Any], bool | Awaitable[bool]] = default_evaluate


@dataclass(frozen=True, slots=True)
class Transform:
    """Something is changed, and goes on.

    Attributes:
        apply: Gets the event and writes to it; may be async.
    """

    apply: Callable[[Any], Any]


Action: TypeAlias = Proceed | Deny | Guide | Confirm | Transform
