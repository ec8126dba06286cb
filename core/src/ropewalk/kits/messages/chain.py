"""A chained hash of the conversation: what a paused run is held against when it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from ropewalk.kits.json_values import packed
from ropewalk.types import Message


class Chain:
    """Hashes role and content of each message, chained; each message is hashed once until `cut` forgets it."""

    __slots__ = ("_links",)

    def __init__(self) -> None:
        self._links: list[bytes] = []

    def cut(self, length: int) -> None:
        """Forgets all but the first `length` messages: others stand in their places now."""
        del self._links[length:]

    def digest(self, messages: Sequence[Message]) -> str:
        """The hash of the whole conversation, in hexadecimal."""
        links = self._links
        for message in messages[len(links) :]:
            kept = packed([message["role"], message["content"]])
            text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
            links.append(hashlib.sha256((links[-1] if links else b"") + text.encode()).digest())

        return links[-1].hex() if links else ""
