"""`Agent(context_manager="auto")`: summaries and offloading, with values that suit most agents."""

from __future__ import annotations

from ropewalk_context_auto.plugin import ContextAutoPlugin

__all__ = ["ContextAutoPlugin"]
