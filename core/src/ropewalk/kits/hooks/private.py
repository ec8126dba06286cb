"""Subjects of the gates that nobody else holds: what a policy has seen is what runs, and what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.calls.invocation import Invocation
from ropewalk.kits.calls.outcomes import ModelOutcome
from ropewalk.kits.messages.view import HistoryView
from ropewalk.model import ModelRequest
from ropewalk.tools import ToolCall
from ropewalk.types import Message

S = TypeVar("S")
_OUTCOME = ("message", "stop_reason", "usage", "latency_ms", "input_errors", "redact_input")


def private(subject: S, agent: Any) -> S:
    """A copy of a gate's subject, of plain values.

    The history's own messages and the agent's own tool specs are not copied: a copy would cost more with every turn,
    and they are the kernel's.
    """
    if isinstance(subject, ToolCall):
        return cast("S", _call(subject))

    if isinstance(subject, ModelOutcome):
        return cast("S", ModelOutcome(*[plain_copy(getattr(subject, name)) for name in _OUTCOME]))

    if isinstance(subject, ModelRequest):
        return cast("S", _request(subject, agent))

    if isinstance(subject, Invocation):
        messages = tuple(plain_copy(list(subject.messages)))
        return cast("S", Invocation(messages, subject.options, subject.resumed))

    return plain_copy(subject) if isinstance(subject, dict) else subject


def _call(call: ToolCall) -> ToolCall:
    fresh = call.with_tool(call.tool)  # type: ignore[arg-type]  # a call without a tool stays one
    fresh.tool_use = plain_copy(fresh.tool_use)
    return fresh


def _request(request: ModelRequest, agent: Any) -> ModelRequest:
    specs = request.tool_specs
    return ModelRequest(
        _messages(request.messages, agent),
        plain_copy(request.system),
        specs if specs is agent.tool_registry.specs else plain_copy(specs),
        plain_copy(request.tool_choice),
        plain_copy(request.output_schema),
        request.invocation_state,
        request.purpose,
    )


def _messages(messages: Sequence[Message], agent: Any) -> Sequence[Message]:
    if type(messages) is HistoryView:
        return messages

    own = {id(message) for message in agent.history.messages}
    return [message if id(message) in own else plain_copy(message) for message in messages]
