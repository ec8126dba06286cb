"""What context plugins share: pins, whole tool turns, edits, when to compress, and the base class of managers."""

from __future__ import annotations

from ropewalk.kits.context.attempts import Attempts
from ropewalk.kits.context.changes import conversation, edits_of, put
from ropewalk.kits.context.keeping import closed, first_task, newest_turn, next_cut
from ropewalk.kits.context.manager import ConversationManager, GivenManager, is_manager, put_back, steps_aside
from ropewalk.kits.context.pins import is_pinned, pinned_as, pinned_places
from ropewalk.kits.context.proactive import DEFAULT_THRESHOLD, UNKNOWN_WINDOW, is_due, threshold_of, window_of

__all__ = [
    "DEFAULT_THRESHOLD",
    "UNKNOWN_WINDOW",
    "Attempts",
    "ConversationManager",
    "GivenManager",
    "closed",
    "conversation",
    "edits_of",
    "first_task",
    "is_due",
    "is_manager",
    "is_pinned",
    "newest_turn",
    "next_cut",
    "pinned_as",
    "pinned_places",
    "put",
    "put_back",
    "steps_aside",
    "threshold_of",
    "window_of",
]
