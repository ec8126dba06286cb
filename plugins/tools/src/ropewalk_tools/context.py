"""What a tool may know about the call that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ropewalk.tools import CancelSignal, ToolCall
    from ropewalk.types import ToolUse


class ToolContext:
    """Handed to a tool that asks for it with `@tool(context=True)`; the model knows nothing of it."""

    __slots__ = ("_call",)

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    @property
    def tool_use(self) -> ToolUse:
        """Id, name and input of the call, as the model asked and the hooks left it. Do not write to it."""
        return self._call.tool_use

    @property
    def agent(self) -> Any:
        """The agent whose model asked."""
        return self._call.agent

    @property
    def invocation_state(self) -> dict[str, Any]:
        """The dict that the agent's caller gave, by reference."""
        return self._call.invocation_state

    @property
    def cancel_signal(self) -> CancelSignal:
        """Set when the run is cancelled: a synchronous tool that takes long looks at it now and then."""
        return self._call.cancel_signal

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this tool use, also after a crash; different for any other use."""
        return self._call.idempotency_key

    def emit(self, data: Any) -> None:
        """Shows an intermediate value to whoever follows the run (a `tool_stream` event). Works in any thread."""
        self._call.emit(data)
