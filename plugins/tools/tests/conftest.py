from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk.tools import ToolCall
from ropewalk.types import ToolResult


class FakeRun:
    """As much of a run as a tool can see."""

    id = "run_1"

    def __init__(self) -> None:
        self.agent = object()
        self.invocation_state: dict[str, Any] = {"tenant": "acme"}
        self.cancel_signal = threading.Event()
        self.streamed: list[Any] = []
        self.errors: dict[str, BaseException] = {}

    def tool_streamed(self, tool_use: Any, data: Any) -> None:
        self.streamed.append(data)


@pytest.fixture
def run() -> FakeRun:
    return FakeRun()


@pytest.fixture
def invoke(run: FakeRun) -> Callable[..., Any]:
    """Invokes a tool with an input; answers with the result."""

    async def invoke(tool: Any, /, tool_use_id: str = "T1", **values: Any) -> ToolResult:
        use = {"toolUseId": tool_use_id, "name": tool.tool_name, "input": values}
        return await tool.invoke(ToolCall(run, use, tool))

    return invoke


@pytest.fixture
def said(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Invokes a tool; answers with the text of a successful result."""

    async def said(tool: Any, /, **values: Any) -> str:
        result = await invoke(tool, **values)
        assert result["status"] == "success", result
        return result["content"][0]["text"]

    return said


@pytest.fixture
def failed(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Invokes a tool; answers with the text of its error result."""

    async def failed(tool: Any, /, **values: Any) -> str:
        result = await invoke(tool, **values)
        assert result["status"] == "error", result
        return result["content"][0]["text"]

    return failed
