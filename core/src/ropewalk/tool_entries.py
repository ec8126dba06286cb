"""From the entries of `tools=` to tools, through the plugins that know how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ropewalk.agent_base import AgentBase
from ropewalk.errors import MissingPluginError, ToolDefinitionError
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import Tool

if TYPE_CHECKING:
    from ropewalk.agent import Agent


def collect_tools(agent: Agent, entries: Iterable[Any]) -> Iterator[Tool]:
    """The tools that entries of `tools=` stand for.

    Raises:
        ToolDefinitionError: An entry is no tool and no plugin makes one of it.
        MissingPluginError: An entry is a string and the plugin that loads tools is not active.
    """
    if is_tool(entries) or isinstance(entries, str):
        raise ToolDefinitionError(f"tools={entries!r:.80} is one entry: pass a list of them")

    for entry in entries:
        if is_tool(entry):
            yield entry
            continue

        found = agent.hooks.provide_tool(entry, agent)
        if found is not None:
            yield from found if isinstance(found, list | tuple) else (found,)
        elif isinstance(entry, list | tuple | set | frozenset):
            yield from collect_tools(agent, entry)
        else:
            raise _refusal(agent, entry)


def _refusal(agent: Agent, entry: Any) -> Exception:
    shown = f"tools= entry {entry!r:.80}"
    if (isinstance(entry, str | dict) or callable(entry)) and not agent.hooks.plan.provide_tool:
        return MissingPluginError(shown, "ropewalk-tools")

    if isinstance(entry, AgentBase):
        return MissingPluginError(f"tools= entry, the agent {entry.name!r},", "ropewalk-subagents")

    if callable(entry):
        return ToolDefinitionError(f"{shown} is a plain {type(entry).__name__}: decorate it with @tool")

    return ToolDefinitionError(
        f"{shown} is no tool: pass a function decorated with @tool, a file path, 'module:function', "
        "or an object with tool_name, tool_spec and invoke"
    )
