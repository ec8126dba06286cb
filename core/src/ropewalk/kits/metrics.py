"""Counts and durations of one invocation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ropewalk.types import Usage


def no_usage() -> Usage:
    """Usage to add to."""
    return {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


@dataclass(slots=True)
class ToolMetrics:
    """Calls of one tool. Times are in seconds."""

    call_count: int = 0
    success_count: int = 0
    error_count: int = 0
    total_time: float = 0.0


@dataclass(slots=True)
class EventLoopMetrics:
    """What one invocation cost. Every result has its own; add them up for a conversation.

    Attributes:
        cycle_count: Model turns (attempts that were dropped are not turns).
        cycle_durations: Seconds of each cycle, model and tools.
        tool_metrics: Per tool name as the model asked for it.
        accumulated_usage: Tokens of every model call, dropped attempts included.
        accumulated_metrics: `latencyMs` as providers report it, summed.
        model_calls: Attempts at model calls.
        started: Seconds on the run's clock when the invocation began.
    """

    cycle_count: int = 0
    cycle_durations: list[float] = field(default_factory=list)
    tool_metrics: dict[str, ToolMetrics] = field(default_factory=dict)
    accumulated_usage: Usage = field(default_factory=no_usage)
    accumulated_metrics: dict[str, int] = field(default_factory=lambda: {"latencyMs": 0})
    model_calls: int = 0
    started: float = 0.0

    def add_usage(self, usage: Usage, latency_ms: int) -> None:
        """Counts one model call."""
        self.model_calls += 1
        total: Any = self.accumulated_usage
        for key, count in usage.items():
            total[key] = total.get(key, 0) + count

        self.accumulated_metrics["latencyMs"] += latency_ms

    def add_tool(self, name: str, seconds: float, *, success: bool) -> None:
        """Counts one tool call."""
        tool = self.tool_metrics.get(name)
        if tool is None:
            tool = self.tool_metrics[name] = ToolMetrics()

        tool.call_count += 1
        tool.total_time += seconds
        if success:
            tool.success_count += 1
        else:
            tool.error_count += 1

    def get_summary(self) -> dict[str, Any]:
        """All of it as one JSON object, under the keys of the seeds' SDK."""
        total = sum(self.cycle_durations)
        return {
            "total_cycles": self.cycle_count,
            "total_duration": total,
            "average_cycle_time": total / self.cycle_count if self.cycle_count else 0.0,
            "model_calls": self.model_calls,
            "tool_usage": {name: _tool_summary(tool) for name, tool in self.tool_metrics.items()},
            "accumulated_usage": dict(self.accumulated_usage),
            "accumulated_metrics": dict(self.accumulated_metrics),
        }


def _tool_summary(tool: ToolMetrics) -> dict[str, Any]:
    calls = tool.call_count
    return {
        "call_count": calls,
        "success_count": tool.success_count,
        "error_count": tool.error_count,
        "total_time": tool.total_time,
        "average_time": tool.total_time / calls if calls else 0.0,
        "success_rate": tool.success_count / calls if calls else 0.0,
    }
