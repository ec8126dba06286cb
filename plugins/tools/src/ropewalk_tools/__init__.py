"""Tools from functions: `@tool`, and the entries of an agent's `tools=` that name files, modules and functions."""

from __future__ import annotations

from ropewalk_tools.context import ToolContext
from ropewalk_tools.decorator import tool
from ropewalk_tools.function_tool import FunctionTool
from ropewalk_tools.plugin import ToolsPlugin

__all__ = ["FunctionTool", "ToolContext", "ToolsPlugin", "tool"]
