"""`load_tools_from_directory=True`: the tools of a folder, also when its files change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from ropewalk import hookimpl
from ropewalk.errors import ToolDefinitionError
from ropewalk_tools.loading import tools_in_file

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.tool_registry import ToolRegistry
    from ropewalk.tools import Tool, ToolCall
    from ropewalk.types import ToolResult

_log = logging.getLogger("ropewalk.tools")


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was read last, and the tools of its last version that could be loaded."""

    content: bytes
    tools: tuple[Tool, ...]


@final
class DirectoryPlugin:
    """Loads `*.py` of one folder, and loads again what has changed: before each model call and each tool call.

    Files whose name begins with `_` are left out, and files without a tool. Contents are compared, not times: two
    versions may be written within one tick of the clock. What it remembers is the folder's, not an agent's.
    """

    name = "tools-directory"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, _File] = {}
        self._modules: set[str] = set()
        self._guard = threading.Lock()

    @hookimpl
    def provide_tools(self, agent: Agent) -> list[Tool]:
        """The folder's tools, but for those that `tools=` has brought from the same files.

        Raises:
            ToolDefinitionError: A file cannot be loaded.
        """
        if not self._folder.is_dir():
            _log.warning("load_tools_from_directory: there is no folder %s, so there are no tools in it", self._folder)

        with self._guard:
            self._read(strict=True)
            return [tool for tool in self._tools() if not self._is_ours(agent.tool_registry.get(tool.tool_name))]

    @hookimpl
    async def decide_stop(self, agent: Agent) -> None:
        """Brings the agent's tools up to date at the top of a cycle; it never stops one."""
        self._update(agent.tool_registry)

    @hookimpl
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Runs the newest version, in direct calls too."""
        name = call.tool_use["name"]
        before = agent.tool_registry.get(name)
        self._update(agent.tool_registry)
        now = agent.tool_registry.get(name)
        if now is not None and now is not before and call.tool is before:
            call = call.with_tool(now)

        return await call_next(call)

    def _update(self, registry: ToolRegistry) -> None:
        with self._guard:
            changed = self._read(strict=False)
            current = {tool.tool_name: tool for tool in reversed(self._tools())}

        for name in registry.names:
            if name not in current and self._is_ours(registry.get(name)):
                registry.remove(name)

        for name, tool in current.items():
            present = registry.get(name)
            if present is tool:
                continue

            problem = _refused(registry, tool) if present is None or self._is_ours(present) else "its name is taken"
            if problem and changed:
                _log.warning("tool %r in %s is left out: %s", name, self._folder, problem)

    def _tools(self) -> list[Tool]:
        return [tool for file in self._files.values() for tool in file.tools]

    def _is_ours(self, tool: Any) -> bool:
        return tool is not None and getattr(tool, "__module__", None) in self._modules

    def _read(self, *, strict: bool) -> bool:
        """Loads files that are new or have changed, and forgets those that are gone. True when there were any."""
        paths = sorted(path for path in self._folder.glob("*.py") if not path.name.startswith("_"))
        found = {path: content for path in paths if (content := _content(path)) is not None}
        changed = [path for path, content in found.items() if not self._knows(path, content)]
        gone = self._files.keys() - found.keys()
        for path in changed:
            self._load(path, found[path], strict=strict)

        self._files = {path: self._files[path] for path in found}
        return bool(changed or gone)

    def _knows(self, path: Path, content: bytes) -> bool:
        known = self._files.get(path)
        return known is not None and known.content == content

    def _load(self, path: Path, content: bytes, *, strict: bool) -> None:
        before = self._files.get(path)
        try:
            module, tools = tools_in_file(path)
        except ToolDefinitionError as error:
            if strict:
                raise

            # perhaps half written: the next version is looked at again, and until then the last good one serves
            _log.warning("%s; what was loaded from it before stays", error)
            self._files[path] = _File(content, before.tools if before else ())
            return

        self._modules.add(module)
        self._files[path] = _File(content, tuple(tools))
        if before is not None:
            _log.info("%s has changed; its tools are %s", path, ", ".join(tool.tool_name for tool in tools) or "none")


def _refused(registry: ToolRegistry, tool: Tool) -> str | None:
    """Registers the tool, in the place of its former version if there is one; answers why it cannot be."""
    try:
        registry.replace(tool)
    except ToolDefinitionError as error:
        return str(error)

    return None


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None  # it is gone since the folder was listed
    except OSError:
        return b""  # loading it says why
