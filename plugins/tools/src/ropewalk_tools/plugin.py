"""The plugin that turns entries of `tools=` into tools."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, final

from ropewalk import hookimpl
from ropewalk.errors import ToolDefinitionError
from ropewalk.tools import Tool
from ropewalk_tools.directory import DirectoryPlugin
from ropewalk_tools.loading import not_a_tool, tool_at, tools_of_file, tools_of_module, tools_of_named_module
from ropewalk_tools.providers import is_provider, leave_providers, tools_of_provider

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_FOLDER: Final = "tools"
_FILE: Final = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[\w-]+))?", re.DOTALL)
_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_MODULE: Final = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")


@final
class ToolsPlugin:
    """Understands `"./x.py"`, `"./x.py:add"`, `{"path": ...}`, `"module:function"`, modules and tool providers."""

    name = "tools"

    @hookimpl(trylast=True)  # a plugin with a prefix of its own ("mcp:files") is asked before us
    def provide_tool(self, spec: Any, agent: Agent) -> Tool | list[Tool] | None:
        """The tools that an entry of `tools=` stands for, or None when it is none of the known forms."""
        return tools_of_provider(spec, agent) if is_provider(spec) else _tools_of(spec)

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> DirectoryPlugin | None:
        """The plugin that loads and watches `./tools`, for `load_tools_from_directory=True`."""
        watched = parameter == "load_tools_from_directory" and value is True
        return DirectoryPlugin(Path.cwd() / _FOLDER) if watched else None

    @hookimpl
    async def on_close(self, agent: Agent) -> None:
        """Leaves the agent's tool providers."""
        await leave_providers(agent)


def _tools_of(spec: Any) -> Tool | list[Tool] | None:
    if isinstance(spec, str | Path):
        return _from_text(str(spec))

    if isinstance(spec, dict):
        return _from_dict(spec)

    if isinstance(spec, ModuleType):
        return tools_of_module(spec)

    if inspect.isroutine(spec) or isinstance(spec, functools.partial):
        raise not_a_tool(spec, f"tools={getattr(spec, '__name__', spec)!s}")

    return None


def _from_text(text: str) -> Tool | list[Tool] | None:
    if match := _FILE.fullmatch(text):
        return tools_of_file(match["path"], match["name"])

    if match := _MODULE.fullmatch(text):
        return tool_at(match["module"], match["name"])

    return _from_name(text) if _NAME.fullmatch(text) else None


def _from_name(name: str) -> list[Tool]:
    """The tools of `./tools/<name>.py`, or of the module of that name."""
    file = Path(_FOLDER) / f"{name}.py"
    return tools_of_file(file) if file.is_file() else tools_of_named_module(name)


def _from_dict(spec: dict[Any, Any]) -> list[Tool] | None:
    if set(spec) not in ({"path"}, {"name", "path"}):
        return None

    path, name = spec["path"], spec.get("name")
    if not isinstance(path, str | Path) or not isinstance(name, str | None):
        raise ToolDefinitionError(f"tools={spec!r}: path and name are texts: {{'name': 'add', 'path': './x.py'}}")

    return tools_of_file(path, name)
