"""What the kernel asks of a tool, and what it hands it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ropewalk.kits.calls.copies import plain_copy
from ropewalk.types import Effect, OnUnknown, ToolResult, ToolSpec, ToolUse

if TYPE_CHECKING:
    from ropewalk.kits.log.fold import LogState
    from ropewalk.run import Run


class CancelSignal(Protocol):
    """Tells a running tool that its run was cancelled; `threading.Event` has this shape."""

    def is_set(self) -> bool:
        """Whether the run was cancelled."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks up to `timeout` seconds and tells whether the run was cancelled."""
        ...


@runtime_checkable
class Tool(Protocol):
    """Something a model can ask for.

    A tool may also have `effect` (default `"irreversible"`: never run twice unless known to be safe) and
    `on_unknown` (default: rerun for pure and idempotent tools, `"error_result"` for others).
    """

    @property
    def tool_name(self) -> str:
        """The name the model uses: 1 to 64 of `a-z A-Z 0-9 _ -`."""
        ...

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Runs the tool once and answers with a result for `call.tool_use["toolUseId"]`.

        Whatever it raises becomes an error result of this call.
        """
        ...


class ToolCall:
    """One tool use on its way through the hooks to its tool.

    Attributes:
        tool_use: Id, the name that the model asked for, and the input that will run. Read only: see `with_input`.
        tool: The tool that will run, which a hook may have changed; None when no tool has that name.
        attempt: 1 for the first run of this use, 2 when a hook ran it again, and so on.
        input_error: Why the model's arguments are not usable, or None. Such a call never reaches its tool.
    """

    __slots__ = ("_run", "attempt", "input_error", "tool", "tool_use")

    def __init__(
        self, run: Run, tool_use: ToolUse, tool: Tool | None, input_error: str | None = None, attempt: int = 1
    ) -> None:
        self._run = run
        self.tool_use = tool_use
        self.tool = tool
        self.input_error = input_error
        self.attempt = attempt

    @property
    def agent(self) -> Any:
        """The agent whose model asked."""
        return self._run.agent

    @property
    def invocation_state(self) -> dict[str, Any]:
        """The caller's own dict, by reference."""
        return self._run.invocation_state

    @property
    def direct(self) -> bool:
        """Whether a caller asked, with `agent.tool.name(...)`, and no model."""
        return self._run.direct

    @property
    def cancel_signal(self) -> CancelSignal:
        """Set when the run is cancelled. For synchronous tools, which cannot be interrupted from outside."""
        return self._run.cancel_signal

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this tool use, also after a crash; different for any other use."""
        return f"{self._run.id}:{self.tool_use['toolUseId']}"

    @property
    def error(self) -> BaseException | None:
        """What the tool raised at the last attempt at this use; None when it returned, or has not run."""
        return self._run.errors.get(self.tool_use["toolUseId"])

    @error.setter
    def error(self, error: BaseException | None) -> None:
        if error is not None:
            self._run.errors[self.tool_use["toolUseId"]] = error

    @property
    def memo(self) -> Any:
        """What this call kept when it was paused, in `suspend`; None when it was not."""
        return self._run.calls.memos.get(self.tool_use["toolUseId"])

    @property
    def answers(self) -> dict[str, Any]:
        """The answers that the run was resumed with, by the id of the question."""
        return self._run.answers

    def interrupt(self, name: str, reason: Any = None, response: Any = None, *, where: str = "tool_call") -> Any:
        """Asks the agent's caller and pauses the call until there is an answer; see `Run.interrupt`."""
        return self._run.interrupt(name, reason, response, where=where, of=self.tool_use["toolUseId"])

    @contextmanager
    def nesting(self, agent: Any) -> Iterator[LogState | None]:
        """Lets a sub-agent's run in the block be part of this run's log, unless the sub-agent has its own.

        Args:
            agent: The sub-agent.

        Yields:
            What the log knows of the sub-agent when this call goes on after its process ended; else None.
        """
        with self._run.nesting(agent, self.tool_use["toolUseId"]) as known:
            yield known

    def emit(self, data: Any) -> None:
        """Shows an intermediate value to whoever follows the run (a `tool_stream` event). Never blocks."""
        self._run.tool_streamed(self.tool_use, data)

    def private(self) -> ToolCall:
        """A copy whose arguments nobody else holds, so that what a gate has seen is what runs."""
        return ToolCall(self._run, plain_copy(self.tool_use), self.tool, self.input_error, self.attempt)

    def with_input(self, value: dict[str, Any]) -> ToolCall:
        """A call of the same use with other arguments; the history keeps what the model asked for."""
        use: ToolUse = {**self.tool_use, "input": value}
        return ToolCall(self._run, use, self.tool, None, self.attempt)

    def with_tool(self, tool: Tool) -> ToolCall:
        """A call of the same use that runs another tool."""
        return ToolCall(self._run, self.tool_use, tool, self.input_error, self.attempt)


class ToolBatch:
    """The tool uses of one model message, in the order of the request.

    Attributes:
        calls: One call per use.
        invocation_state: The caller's own dict, by reference.
    """

    __slots__ = ("calls", "invocation_state")

    def __init__(self, calls: tuple[ToolCall, ...], invocation_state: dict[str, Any]) -> None:
        self.calls = calls
        self.invocation_state = invocation_state

    def interrupt(self, name: str, reason: Any = None, response: Any = None, *, where: str = "before_tools") -> Any:
        """Asks the agent's caller and pauses the run until there is an answer; see `Run.interrupt`."""
        return self.calls[0].interrupt(name, reason, response, where=where)


def error_result(tool_use_id: str, text: str) -> ToolResult:
    """An error answer to one tool use."""
    return {"toolUseId": tool_use_id, "status": "error", "content": [{"text": text}]}


def effect_of(tool: Tool) -> Effect:
    """What running the tool twice does; `"irreversible"` unless the tool says otherwise."""
    effect: Effect = getattr(tool, "effect", "irreversible")
    return effect


def on_unknown_of(tool: Tool) -> OnUnknown:
    """What to do with a call of the tool that was started and never seen to end."""
    declared: OnUnknown | None = getattr(tool, "on_unknown", None)
    return declared or ("error_result" if effect_of(tool) == "irreversible" else "rerun")
