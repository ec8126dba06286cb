"""Calls a handler: within its time limit, and with what its failure means."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropewalk.kits.aio.deadlines import LATE, within
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.calls.verdicts import Moment
from ropewalk_interventions.actions import Action, Confirm, Deny, Guide, Proceed, Transform
from ropewalk_interventions.errors import HandlerAnswerError, HandlerTimeoutError

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk_interventions.handler import InterventionHandler

logger = logging.getLogger("ropewalk.interventions")

_asked: ContextVar[tuple[tuple[int, int], ...]] = ContextVar("ropewalk_interventions_asked", default=())


@dataclass(frozen=True, slots=True)
class Failed:
    """A handler has failed, and the run goes on.

    Attributes:
        denies: Whether that counts as a refusal.
        reason: What the model or the caller is told then; the error's text is for the log.
    """

    denies: bool
    reason: str


async def action_of(handler: InterventionHandler, moment: Moment, event: Any, agent: Agent) -> Action | Failed:
    """What a handler answers at a moment.

    Raises:
        HandlerAnswerError: It is no action. Whatever `on_error` says: nobody could tell what was meant.
        Exception: What the handler raised, with `on_error="throw"`.
    """
    with _asking(handler, agent):
        answer = await guarded(handler, moment, getattr(handler, moment), event)

    if isinstance(answer, Failed | Proceed | Deny | Guide | Confirm | Transform):
        return answer

    raise HandlerAnswerError(
        f"{moment} of the intervention handler {handler.name!r} returned {answer!r:.80}: return Proceed(), Deny(...), "
        "Guide(...), Confirm(...) or Transform(...)"
    )


async def guarded(handler: InterventionHandler, where: str, body: Callable[..., Any], *given: Any) -> Any:
    """What a piece of a handler returns, or that it has failed.

    Raises:
        Exception: What it raised, with `on_error="throw"`.
    """
    try:
        return await _within_limit(handler, where, body, given)
    except Exception as error:
        if handler.on_error == "throw":
            error.add_note(f"raised by {where} of the intervention handler {handler.name!r}")
            raise

        denies = handler.on_error == "deny"
        logger.warning(
            "%s of the intervention handler %r failed, which counts as %s (on_error=%r)",
            where, handler.name, "a refusal" if denies else "no objection", handler.on_error, exc_info=True,
        )  # fmt: skip
        return Failed(denies, f"the handler {handler.name!r} failed ({type(error).__name__})")


async def _within_limit(handler: InterventionHandler, where: str, body: Callable[..., Any], given: Any) -> Any:
    limit = handler.time_limit
    if limit is None:
        answer = body(*given)
        return await answer if inspect.isawaitable(answer) else answer

    # A task of its own, and a thread for what is not async: whoever never returns is left behind.
    answer = await within(limit, called(body, *given))
    if answer is LATE:
        raise HandlerTimeoutError(
            f"{where} of the intervention handler {handler.name!r} did not answer within {limit:g} s: "
            "make it faster, or raise its time_limit"
        )

    return answer


async def called(body: Callable[..., Any], *given: Any) -> Any:
    """What a function returns; one that is not async runs in a thread, where it may wait."""
    answer = body(*given) if inspect.iscoroutinefunction(body) else await in_thread(body, *given)
    return await answer if inspect.isawaitable(answer) else answer


@contextmanager
def _asking(handler: InterventionHandler, agent: Agent) -> Iterator[None]:
    token = _asked.set((*_asked.get(), (id(handler), id(agent))))
    try:
        yield
    finally:
        _asked.reset(token)


def is_being_asked(handler: InterventionHandler, agent: Agent) -> bool:
    """Whether this happens because of the handler's own question to the model, which it is not asked about again."""
    return (id(handler), id(agent)) in _asked.get()
