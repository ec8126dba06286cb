"""Agents as tools of other agents: `agent.as_tool()`, and an Agent in `tools=`."""

from __future__ import annotations

from ropewalk_subagents.agent_tool import AgentTool
from ropewalk_subagents.plugin import SubagentsConfig, SubagentsPlugin

__all__ = ["AgentTool", "SubagentsConfig", "SubagentsPlugin"]
