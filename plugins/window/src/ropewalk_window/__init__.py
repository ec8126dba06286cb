"""Keeps the history of a Ropewalk agent within bounds."""

from __future__ import annotations

from ropewalk.kits.context import ConversationManager
from ropewalk_window.manager import SlidingWindowConversationManager
from ropewalk_window.null import NullConversationManager
from ropewalk_window.plugin import WindowPlugin

__all__ = ["ConversationManager", "NullConversationManager", "SlidingWindowConversationManager", "WindowPlugin"]
