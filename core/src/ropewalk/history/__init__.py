"""The conversation: one class holds it, keeps it valid, and is the only one to change it."""

from __future__ import annotations

from ropewalk.history.history import History
from ropewalk.history.messages import MessageList
from ropewalk.history.view import HistoryView

__all__ = ["History", "HistoryView", "MessageList"]
