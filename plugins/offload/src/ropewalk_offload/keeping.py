"""Results in a storage: how they are written, under which reference, and when they are removed."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final, cast

from ropewalk.kits.context.storage import ContextStorage, StorageError
from ropewalk.kits.json_values import packed, unpacked
from ropewalk.types import ToolResult, ToolResultContent

if TYPE_CHECKING:
    from ropewalk import Agent, JSONState, ToolCall

logger = logging.getLogger("ropewalk.offload")

CELL: Final = "offload"
_REFERENCE: Final = re.compile(r"off_[0-9a-f]{20}")
_MESSAGES_PER_CYCLE: Final = 2


def encoded(call: ToolCall, result: ToolResult) -> bytes:
    """A result as it is stored."""
    value = {"tool": call.tool_use["name"], "status": result["status"], "content": packed(result["content"])}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decoded(data: bytes) -> list[ToolResultContent]:
    """The content of a stored result.

    Raises:
        StorageError: It is none.
    """
    try:
        content: Any = unpacked(json.loads(data)["content"])
        if isinstance(content, list) and all(isinstance(piece, dict) for piece in content):
            return cast("list[ToolResultContent]", content)
    except (ValueError, TypeError, LookupError):
        pass

    raise StorageError("what is stored there is no tool result: run the tool again")


def reference_for(call: ToolCall, data: bytes) -> str:
    """The reference of a result: the same when its call is gone through again, and nobody else's to guess.

    It depends on the run's random id, the call, and the content.
    """
    digest = hashlib.sha256(f"{call.idempotency_key}\0".encode("utf-8", "replace"))
    digest.update(data)
    return f"off_{digest.hexdigest()[:20]}"


def reference_in(given: Any) -> str | None:
    """The reference in what a model gave for one, which may have quotes or brackets around it; None when none is."""
    found = _REFERENCE.search(given[:1_000]) if isinstance(given, str) else None
    return None if found is None else found.group()


class Ages:
    """When the references of one agent were used last, in its cell; for those that are removed when they grow old.

    Time is counted in message ids, which the history never uses twice: two for each cycle. So nothing is written, and
    nothing is called, in the cycles in which nothing is offloaded. Messages that a context plugin takes out and puts
    back get new ids; what the newest messages speak of is not old, whatever the ids say.
    """

    __slots__ = ("_cell", "_messages", "_most", "_now")

    def __init__(self, agent: Agent, most_cycles: int) -> None:
        ids, self._messages = agent.history.ids, agent.history.messages
        self._cell: JSONState = agent.plugin_state(CELL)
        self._most = most_cycles * _MESSAGES_PER_CYCLE
        self._now = ids[-1] if ids else 0

    def __contains__(self, reference: str) -> bool:
        return reference in self._cell

    def note(self, reference: str) -> None:
        """The reference is used now."""
        if self._cell.get(reference) != self._now:
            self._cell.set(reference, self._now)

    async def evict(self, storage: ContextStorage) -> None:
        """Removes what was not used for long."""
        used_at = self._cell.get()
        is_old = any(self._now - used > self._most for used in used_at.values())
        in_sight = self._in_sight() if is_old else ()
        for reference, used in used_at.items():
            if used > self._now:
                self.note(reference)  # the agent has got another history since
            elif self._now - used > self._most and reference not in in_sight:
                try:
                    await storage.delete(reference)
                except Exception as error:  # noqa: BLE001 - a storage of the user's; it is tried again
                    logger.warning("offload: %s could not be removed: %s", reference, error)
                else:
                    self._cell.delete(reference)

    def _in_sight(self) -> set[str]:
        """The references in the messages of the cycles that count: results that were kept then, or were read."""
        texts: list[str] = []
        for message in self._messages[-self._most :]:
            for block in message["content"]:
                if "toolUse" in block:
                    texts.append(str(block["toolUse"]["input"]))
                elif "toolResult" in block:
                    texts += [str(piece.get("text", "")) for piece in block["toolResult"]["content"]]

        return {found for text in texts for found in _REFERENCE.findall(text)}
