"""The plugin behind `Agent.as_tool()` and behind agents in `tools=`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from pydantic import BaseModel, ConfigDict, Field

from ropewalk import Agent, ToolDefinitionError, hookimpl
from ropewalk.kits.tool_registry import is_tool
from ropewalk_subagents.agent_tool import AgentTool

if TYPE_CHECKING:
    from ropewalk.tools import Tool


class SubagentsConfig(BaseModel):
    """Options of the plugin.

    Attributes:
        max_depth: How many sub-agents may be nested; the next one is refused with an error result. Default 8.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_depth: int = Field(default=8, ge=1)


@final
class SubagentsPlugin:
    """Makes tools of agents. It has no part in runs: what a call costs, the tool costs."""

    name = "subagents"
    Config = SubagentsConfig

    def __init__(self, config: SubagentsConfig | None = None) -> None:
        self._config = config or SubagentsConfig()

    @hookimpl
    def provide_tool(self, spec: Any) -> Tool | None:
        """The tool of an agent that stands in `tools=`, or None when the entry is none."""
        if isinstance(spec, Agent):
            return self._as_tool(spec)

        as_tool = None if isinstance(spec, type) else getattr(spec, "as_tool", None)
        return _made(as_tool, spec) if callable(as_tool) else None

    @hookimpl
    def provide_method(self, name: str, agent: Agent) -> Callable[..., Tool] | None:
        """What `agent.as_tool(...)` does."""
        return functools.partial(self._as_tool, agent) if name == "as_tool" else None

    def _as_tool(
        self, agent: Agent, *, name: str | None = None, description: str | None = None, preserve_context: bool = False
    ) -> Tool:
        return AgentTool(
            agent,
            name=name,
            description=description,
            preserve_context=preserve_context,
            max_depth=self._config.max_depth,
        )


def _made(as_tool: Callable[[], Any], spec: Any) -> Tool:
    """The tool that an agent of another kind (a remote one) makes of itself."""
    tool: Tool = as_tool()
    if not is_tool(tool):
        raise ToolDefinitionError(
            f"tools= entry {spec!r:.80}: its as_tool() gave {tool!r:.80}, which is no tool: "
            "return an object with tool_name, tool_spec and invoke"
        )

    return tool
