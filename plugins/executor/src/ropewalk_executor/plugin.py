"""The two executors. Each is the plugin itself."""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

import pydantic

from ropewalk import hookimpl
from ropewalk.tools import ToolBatch
from ropewalk.types import ToolResult
from ropewalk_executor.batch import Batch, RunTool

DEFAULT_MAX_CONCURRENCY: Final = 128


class _Executor:
    """What the executors have in common: the place that they take."""

    name = "executor"

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> NoReturn:
        """Refuses what is no executor: an executor is a plugin, which nobody is asked to adopt."""
        raise TypeError(
            f"{parameter}={value!r} is no executor: give ConcurrentToolExecutor(max_concurrency=...),"
            " SequentialToolExecutor() or a plugin with execute_tools"
        )


class ConcurrentToolExecutor(_Executor):
    """Runs the calls of one model message at once, and answers in the order of the request.

    Args:
        max_concurrency: How many calls of one message may run at the same time, at least 1.

    Raises:
        ValueError: `max_concurrency` is no whole number, or below 1.
    """

    def __init__(self, max_concurrency: int = DEFAULT_MAX_CONCURRENCY) -> None:
        if type(max_concurrency) is not int or max_concurrency < 1:
            raise ValueError(
                f"ConcurrentToolExecutor: max_concurrency={max_concurrency!r}: give a whole number of at least 1"
                " (1 runs one call after the other)"
            )

        self.max_concurrency: Final = max_concurrency

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_concurrency={self.max_concurrency})"

    @hookimpl
    async def execute_tools(self, batch: ToolBatch, run_tool: RunTool) -> list[ToolResult]:
        """Runs a single call in place, several as tasks."""
        calls = batch.calls
        if len(calls) > 1:
            return await Batch(calls, run_tool, self.max_concurrency).run()

        return [await run_tool(call) for call in calls]


@final
class SequentialToolExecutor(_Executor):
    """Runs the calls of one model message one after the other, in the order of the request."""

    def __repr__(self) -> str:
        return "SequentialToolExecutor()"

    @hookimpl
    async def execute_tools(self, batch: ToolBatch, run_tool: RunTool) -> list[ToolResult]:
        """Runs the calls in place. What one raises keeps the next from being started."""
        return [await run_tool(call) for call in batch.calls]


@final
class ExecutorPlugin(ConcurrentToolExecutor):
    """What runs when no `tool_executor` is given: the concurrent executor, with options from file or environment."""

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `ConcurrentToolExecutor`."""

        max_concurrency: int = pydantic.Field(default=DEFAULT_MAX_CONCURRENCY, ge=1)

    def __init__(self, config: Config | None = None) -> None:
        super().__init__((config or self.Config()).max_concurrency)
