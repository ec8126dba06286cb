"""Hooks that find tools and wrap their execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.outcomes import ToolsOutcome
    from ropewalk.tools import Tool, ToolBatch, ToolCall
    from ropewalk.types import ToolResult


class ToolSpecs(Protocol):
    """Where tools come from, and how they are run."""

    @hookspec(firstresult=True)
    def provide_tool(self, spec: Any, agent: Agent) -> Tool | list[Tool] | None:
        """Turns an entry of `tools=` that is no tool yet into tools.

        Args:
            spec: The entry: a string, a dict, a module, anything.
            agent: The agent that will have the tools.

        Returns:
            One tool, several, or None when the entry is not this plugin's.

        Raises:
            ToolDefinitionError: The entry is this plugin's, and wrong.
        """

    @hookspec
    def provide_tools(self, agent: Agent) -> list[Tool]:
        """Brings tools of the plugin's own, at the end of an agent's construction."""

    @hookspec
    async def around_tools(
        self, batch: ToolBatch, call_next: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> ToolsOutcome:
        """Wraps the tools of one model message. `execute_tools` is the innermost step."""

    @hookspec(firstresult=True)
    async def execute_tools(
        self, batch: ToolBatch, run_tool: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> list[ToolResult] | None:
        """Runs the calls of one batch: in which order and how many at once is the executor's to decide.

        `run_tool(call)` runs one through `around_tool_call` and raises no `Exception`. When nobody answers: in turn.

        Returns:
            One result per call, in the order of `batch.calls`.
        """

    @hookspec
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Wraps one tool call.

        Return an error result without calling on to deny it. Calling `call_next` again runs the tool again, as another
        attempt. `call.with_input(...)` and `call.with_tool(...)` change what runs. What the tool answered is in the log
        before it comes here; what must not be stored is for `intervene` to replace, at `"after_tool_call"`.
        """
