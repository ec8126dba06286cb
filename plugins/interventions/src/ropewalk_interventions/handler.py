"""The base of handlers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ropewalk.kits.calls.verdicts import Moment
from ropewalk.kits.lifecycle import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from ropewalk_interventions.actions import Action, Proceed

OnError: TypeAlias = Literal["throw", "proceed", "deny"]
Answer: TypeAlias = Action | Awaitable[Action]

MOMENTS: Final[tuple[Moment, ...]] = (
    "before_invocation",
    "before_model_call",
    "after_model_call",
    "before_tool_call",
    "after_tool_call",
)


class InterventionHandler:
    """Looks at what an agent is about to do, or has done, and answers with an action.

    Override methods in the class; those that are not overridden are never called. Each may be plain or async, gets an
    event of its own (what it writes there has no effect; answer `Transform`), and must return an action. A plain
    method runs in the agent's event loop, or in a thread when the handler has a time limit.

    Attributes:
        name: Names the handler in questions, guidance and messages; unique in an agent.
        on_error: When the handler raises: `"throw"` stops the run with the error; `"proceed"` goes on as if it had
            nothing to object to; `"deny"` refuses, and withholds what has happened already.
        time_limit: Seconds for one answer; a handler that takes longer has failed. None is no limit.
    """

    name: str
    on_error: OnError = "throw"
    time_limit: float | None = None

    _nothing: ClassVar[Proceed] = Proceed()

    def before_invocation(self, event: BeforeInvocationEvent) -> Answer:  # noqa: ARG002 - for those who override it
        """The agent is called. Deny and Guide answer in the model's place, and nothing is stored."""
        return self._nothing

    def before_model_call(self, event: BeforeModelCallEvent) -> Answer:  # noqa: ARG002 - likewise
        """The model is about to be called. Deny answers in its place, Guide adds the feedback to what it is asked."""
        return self._nothing

    def after_model_call(self, event: AfterModelCallEvent) -> Answer:  # noqa: ARG002 - likewise
        """The model has answered. Guide drops the answer and asks again."""
        return self._nothing

    def before_tool_call(self, event: BeforeToolCallEvent) -> Answer:  # noqa: ARG002 - likewise
        """A tool is about to run. Deny, Guide and an answer of no make an error result instead."""
        return self._nothing

    def after_tool_call(self, event: AfterToolCallEvent) -> Answer:  # noqa: ARG002 - likewise
        """A tool has run. Transform changes what the model sees of it."""
        return self._nothing


def overrides(handler: InterventionHandler, moment: Moment) -> bool:
    """Whether the handler's class has a method of its own for a moment."""
    return getattr(type(handler), moment) is not getattr(InterventionHandler, moment)


def problem_of(handler: Any) -> str | None:
    """What is wrong with an entry of `interventions=`, or None."""
    shown = f"{handler!r:.80}"
    if isinstance(handler, type):
        return f"{shown} is a class: give an instance"

    if not isinstance(handler, InterventionHandler):
        return f"{shown} is no handler: derive its class from InterventionHandler"

    kind = type(handler).__name__
    name = getattr(handler, "name", None)
    if not isinstance(name, str) or not name.strip():
        return f"{kind}.name is {name!r}: give the handler a name, a text"

    if handler.on_error not in ("throw", "proceed", "deny"):
        return f'{kind}.on_error is {handler.on_error!r}: use "throw", "proceed" or "deny"'

    limit: Any = handler.time_limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
        return f"{kind}.time_limit is {limit!r}: give seconds, more than 0, or None for no limit"

    return None
