"""`Agent(context_manager="agentic")`: the model manages its own context, with tools and a status line."""

from __future__ import annotations

from ropewalk_context_agentic.plugin import ContextAgenticPlugin

__all__ = ["ContextAgenticPlugin"]
