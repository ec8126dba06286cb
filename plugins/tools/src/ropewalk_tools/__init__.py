"""Tools from functions: `@tool`, and the entries of an agent's `tools=` that name files, modules and functions."""

from __future__ import annotations

from ropewalk.kits.tool_provider import ToolProvider
from ropewalk_tools.context import ToolContext
from ropewalk_tools.decorator import tool
from ropewalk_tools.directory import DirectoryPlugin
from ropewalk_tools.function_tool import FunctionTool
from ropewalk_tools.module_tool import ModuleTool
from ropewalk_tools.plugin import ToolsPlugin

__all__ = ["DirectoryPlugin", "FunctionTool", "ModuleTool", "ToolContext", "ToolProvider", "ToolsPlugin", "tool"]
