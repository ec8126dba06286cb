"""The events that handlers get, made of the subjects of the kernel's gates, and what a Transform made of them."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ropewalk import Invocation, ModelOutcome, ModelRequest, ToolCall, current_run
from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.lifecycle import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    ModelStopResponse,
)
from ropewalk.kits.messages.estimate import estimate_tokens
from ropewalk.types import Message, ToolResult, ToolUse
from ropewalk_interventions import approvals

if TYPE_CHECKING:
    from ropewalk.agent import Agent


@dataclass(eq=False)
class ModelRequestEvent(BeforeModelCallEvent):
    """The model is about to be called; what a Transform writes to `messages` is sent, and not stored.

    Attributes:
        request: The request, not to be written to.
        messages: Writable: the conversation, copied when it is first read.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel", "messages"})

    request: ModelRequest = field(default_factory=lambda: ModelRequest(()), repr=False)

    @property
    def messages(self) -> list[Message]:
        """The conversation that is sent."""
        known: dict[str, Any] = self.__dict__
        if "_messages" not in known:
            known["_messages"] = copy.deepcopy(list(self.request.messages))

        copied: list[Message] = known["_messages"]
        return copied

    @messages.setter
    def messages(self, messages: list[Message]) -> None:
        self.__dict__["_messages"] = messages

    @property
    def purpose(self) -> str:
        """`"turn"` for the conversation itself, or the name of a call beside it."""
        return self.request.purpose


@dataclass(eq=False)
class ModelAnswerEvent(AfterModelCallEvent):
    """The model has answered; what a Transform makes of `stop_response.message` takes the answer's place."""

    writable: ClassVar[frozenset[str]] = frozenset({"retry", "stop_response"})


@dataclass(eq=False)
class ToolCallEvent(BeforeToolCallEvent):
    """A tool is about to run.

    Attributes:
        answered: Whether somebody has answered the handler's question about this very call: tool and input.
        once: `await event.once(key, act)` does something only once for this very call in this run, also when the
            handler is asked again after a pause; `act` may be async, what it returns must be JSON.
    """

    answered: bool = False
    once: Callable[[str, Callable[[], Any]], Awaitable[Any]] = field(default=approvals.at_once, repr=False)


class Running:
    """The tool call in hand, for the event after it.

    Attributes:
        call: As it passed the handlers.
        began: When it did, on the run's clock.
    """

    __slots__ = ("began", "call")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.began: float | None = None

    def passed(self, call: ToolCall) -> None:
        """Notes the call that will run."""
        self.call, self.began = call, current_seam().monotonic()


# -- from subject to event -----------------------------------------------------------------------------------------


def before_invocation(invocation: Invocation, agent: Agent) -> BeforeInvocationEvent:
    """The event of an invocation."""
    messages = copy.deepcopy(list(invocation.messages))
    return BeforeInvocationEvent(agent, invocation.options.invocation_state, messages)


def before_model_call(request: ModelRequest, agent: Agent) -> ModelRequestEvent:
    """The event of a request."""
    count = getattr(agent.current_model, "count_tokens", None)
    counted = partial(count, request) if callable(count) else partial(estimate_tokens, request.messages)
    return ModelRequestEvent(agent, request.invocation_state, count=counted, request=request)


def after_model_call(outcome: ModelOutcome, agent: Agent) -> ModelAnswerEvent:
    """The event of an answer."""
    said = ModelStopResponse(copy.deepcopy(outcome.message), outcome.stop_reason)
    return ModelAnswerEvent(agent, current_run().invocation_state, said)


def before_tool_call(call: ToolCall, agent: Agent, name: str) -> ToolCallEvent:
    """The event of a call, for one handler."""
    seal = approvals.seal_of(call)
    return ToolCallEvent(
        agent,
        call.tool,
        copy.deepcopy(call.tool_use),
        call.invocation_state,
        answered=approvals.question_of(call, name, seal) in call.answers,
        once=partial(approvals.once, call, f"interventions:{name}:{seal}"),
    )


def after_tool_call(result: ToolResult, agent: Agent, running: Running) -> AfterToolCallEvent:
    """The event of a result."""
    call, began = running.call, running.began
    seconds = None if began is None else current_seam().monotonic() - began
    return AfterToolCallEvent(
        agent,
        call.tool,
        copy.deepcopy(call.tool_use),
        call.invocation_state,
        copy.deepcopy(result),
        exception=call.error,
        duration=seconds,
    )


# -- and back ------------------------------------------------------------------------------------------------------


def changed_request(request: ModelRequest, messages: list[Message]) -> ModelRequest:
    """The request with another conversation."""
    return replace(request, messages=messages)


def changed_answer(outcome: ModelOutcome, message: Message) -> ModelOutcome:
    """The answer with another message. What was wrong with arguments stays wrong, unless they were replaced."""
    before = {use["toolUseId"]: use for use in _uses(outcome.message)}
    after = {use["toolUseId"]: use for use in _uses(message)}
    errors = {
        use_id: text for use_id, text in (outcome.input_errors or {}).items() if after.get(use_id) == before.get(use_id)
    }
    stop = "end_turn" if outcome.stop_reason == "tool_use" and not after else outcome.stop_reason
    return ModelOutcome(message, stop, outcome.usage, outcome.latency_ms, errors or None, outcome.redact_input)


def changed_call(call: ToolCall, use: ToolUse, tool: Any, agent: Agent) -> ToolCall:
    """The call with other arguments, another tool, or both; the same object when nothing has changed."""
    before = call.tool_use
    if tool is call.tool and use["name"] != before["name"]:
        tool = agent.tool_registry.get(use["name"])

    if tool is call.tool and use == before:
        return call

    wanted = call.with_input(use["input"])
    wanted.tool_use, wanted.tool = {**use, "toolUseId": before["toolUseId"]}, tool
    return wanted


def _uses(message: Message) -> list[ToolUse]:
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]
