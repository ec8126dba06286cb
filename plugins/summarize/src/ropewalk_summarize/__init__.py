"""Replaces the oldest part of an agent's history by a summary."""

from __future__ import annotations

from ropewalk.kits.context.summaries import SummaryError
from ropewalk_summarize.manager import SummarizingConversationManager
from ropewalk_summarize.plugin import SummarizePlugin

__all__ = ["SummarizePlugin", "SummarizingConversationManager", "SummaryError"]
