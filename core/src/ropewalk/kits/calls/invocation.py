"""One call of an agent, on its way through the hooks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.types import AgentInput, Message

REENTRANT: Final = object()
"""What `admit` answers to run a call beside the one under way, on a branch of the history."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a caller gave along with the prompt, unchecked, for `check_call` and `admit`.

    Attributes:
        prompt: As given.
        invocation_state: The caller's dict, by reference.
        given: Every other keyword that was set: structured_output_model, idempotency_token, limits ...
    """

    prompt: AgentInput
    invocation_state: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One admitted call, for `around_invocation`.

    Attributes:
        messages: The prompt as messages, not yet in the history.
        options: What the caller gave.
        resumed: Whether the call goes on with a paused run; its input is in the history already, unless `messages` has
            it.
    """

    messages: tuple[Message, ...]
    options: CallOptions
    resumed: bool = False

    def with_messages(self, messages: list[Message]) -> Invocation:
        """The same call with another input."""
        return replace(self, messages=tuple(messages))


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle about to start, for `decide_stop`.

    Attributes:
        index: 0 for the first.
        options: What the caller gave.
        metrics: What the invocation has cost so far; not to be written to.
        seconds: Since the invocation began.
    """

    index: int
    options: CallOptions
    metrics: EventLoopMetrics
    seconds: float


@dataclass(frozen=True, slots=True)
class Denied:
    """Returned by an `around_invocation` link instead of calling on: nothing is stored, the text is the answer."""

    text: str
