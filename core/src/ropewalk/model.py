"""What the kernel asks of a model, and what it hands it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ropewalk.types import Message, StreamEvent, SystemContentBlock, ToolChoice, ToolSpec


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call, read-only.

    Attributes:
        messages: The conversation, a valid history. It is a view: do not write to it or to the messages in it.
        system: The system prompt's blocks; empty when there is none.
        tool_specs: The tools the model may ask for.
        tool_choice: Whether the model must use a tool, and which; None leaves it to the model.
        output_schema: A JSON schema that the answer's text must match, when the model can be held to one.
        invocation_state: The caller's own dict, by reference; never sent to a provider.
        purpose: `"turn"` for the conversation itself, or the name of an auxiliary call.
    """

    messages: Sequence[Message]
    system: tuple[SystemContentBlock, ...] = ()
    tool_specs: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    output_schema: dict[str, Any] | None = None
    invocation_state: dict[str, Any] = field(default_factory=dict)
    purpose: str = "turn"


@runtime_checkable
class Model(Protocol):
    """A language model.

    A model may also have `count_tokens(request: ModelRequest) -> int` (exact count of a request's tokens) and
    `context_window: int | None` (tokens); the kernel estimates where they are missing. One model object may serve
    many agents and event loops at once: key clients that belong to a loop by the running loop.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer to one request.

        The kernel closes the iterator when it stops early, and may cancel it while it waits.

        Args:
            request: The conversation and the tools on offer.

        Returns:
            The stream's events (see `ropewalk.types.StreamEvent`), ending in `messageStop` and `metadata`.

        Raises:
            ModelThrottledException: The provider wants fewer requests.
            ContextWindowOverflowException: The request does not fit into the model's window.
            ModelError: Any other failure that the provider reports.
        """
        ...
