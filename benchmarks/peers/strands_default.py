"""strands-agents as it comes, with its SlidingWindowConversationManager of 40 messages."""

from __future__ import annotations

from typing import ClassVar

from peers.strands import Strands


class StrandsDefault(Strands):
    """Drives `strands.Agent` without choosing a conversation manager."""

    name: ClassVar = "strands_default"
    keeps_everything: ClassVar = False
