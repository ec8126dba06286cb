"""Pins: messages that every manager of the context leaves where they are.

The pin is part of the message, under `message["metadata"]["custom"]["pinned"]`, so it survives whatever the message
survives. It covers the whole tool turn: a pinned call keeps its results, pinned results their call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ropewalk.kits.context.keeping import with_pairs
from ropewalk.types import Message


def is_pinned(message: Message) -> bool:
    """Whether the message itself bears a pin."""
    metadata: Any = message.get("metadata")
    custom = metadata.get("custom") if isinstance(metadata, Mapping) else None
    return isinstance(custom, Mapping) and bool(custom.get("pinned"))


def pinned_as(message: Message, pinned: bool = True) -> Message:
    """A copy of the message with the pin set, or without it."""
    metadata: Any = message.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    custom = metadata.get("custom")
    custom = {k: v for k, v in custom.items() if k != "pinned"} if isinstance(custom, Mapping) else {}
    if pinned:
        custom["pinned"] = True

    metadata["custom"] = custom
    if not custom:
        del metadata["custom"]

    bare = {key: value for key, value in message.items() if key != "metadata"}
    return cast("Message", {**bare, "metadata": metadata} if metadata else bare)


def pinned_places(messages: Sequence[Message], first: int = 0) -> set[int]:
    """Where the pinned messages stand, with the other half of their tool turns.

    Args:
        messages: The conversation.
        first: How many messages at its start count as pinned.
    """
    places = {place for place, message in enumerate(messages) if place < first or is_pinned(message)}
    return with_pairs(messages, places)
