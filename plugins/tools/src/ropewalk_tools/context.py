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

    def interrupt(self, name: str, reason: Any = None, response: Any = None) -> Any:
        """Asks whoever called the agent, and pauses the call until there is an answer. Works in any thread.

        When the run goes on, the tool runs again from its start and gets the answer here: what must happen once stands
        behind the last interrupt, or looks at `idempotency_key`.

        Args:
            name: Names the question; the same name in one call is the same question.
            reason: What the caller is told, JSON only.
            response: An answer that is known already; nobody is asked then.

        Returns:
            The answer; any JSON value, also None.

        Raises:
            Suspend: There is no answer yet. No `Exception`; let it pass.
            ValueError: The name is no text.
            RuntimeError: Nobody could answer, in a run beside another one. (A direct call of the tool raises it, too.)
        """
        return self._call.interrupt(name, reason, response)

    def emit(self, data: Any) -> None:
        """Shows an intermediate value to whoever follows the run (a `tool_stream` event). Works in any thread."""
        self._call.emit(data)
