"""The two executors. Each is the plugin itself."""

from __future__ import annotations

from typing import Final, final

from ropewalk import hookimpl
from ropewalk.tools import ToolBatch
from ropewalk.types import ToolResult
from ropewalk_executor.batch import Batch, RunTool

DEFAULT_MAX_CONCURRENCY: Final = 128


@final
class ConcurrentToolExecutor:
    """Runs the calls of one model message at once, and answers in the order of the request.

    Args:
        max_concurrency: How many calls of one message may run at the same time, at least 1.

    Raises:
        ValueError: `max_concurrency` is no whole number, or below 1.
    """

    name = "executor"

    def __init__(self, max_concurrency: int = DEFAULT_MAX_CONCURRENCY) -> None:
        if type(max_concurrency) is not int or max_concurrency < 1:
            raise ValueError(
                f"ConcurrentToolExecutor: max_concurrency={max_concurrency!r}: give a whole number of at least 1"
                " (1 runs one call after the other)"
            )

        self.max_concurrency: Final = max_concurrency

    def __repr__(self) -> str:
        return f"ConcurrentToolExecutor(max_concurrency={self.max_concurrency})"

    @hookimpl
    async def execute_tools(self, batch: ToolBatch, run_tool: RunTool) -> list[ToolResult]:
        """Runs a single call in place, several as tasks."""
        calls = batch.calls
        if len(calls) > 1:
            return await Batch(calls, run_tool, self.max_concurrency).run()

        return [await run_tool(call) for call in calls]


@final
class SequentialToolExecutor:
    """Runs the calls of one model message one after the other, in the order of the request."""

    name = "executor"

    def __repr__(self) -> str:
        return "SequentialToolExecutor()"

    @hookimpl
    async def execute_tools(self, batch: ToolBatch, run_tool: RunTool) -> list[ToolResult]:
        """Runs the calls in place. What one raises keeps the next from being started."""
        return [await run_tool(call) for call in batch.calls]


ExecutorPlugin = ConcurrentToolExecutor
"""What runs when no `tool_executor` is given."""
