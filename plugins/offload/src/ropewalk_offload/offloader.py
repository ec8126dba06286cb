"""The offloader: large tool results go to a storage before they get into the history."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ropewalk import MissingPluginError, hookimpl
from ropewalk.kits.context.folder_storage import FolderStorage
from ropewalk.kits.context.sandbox_storage import SandboxStorage, is_sandbox
from ropewalk.kits.context.storage import ContextStorage, MemoryStorage
from ropewalk.kits.messages.estimate import block_tokens
from ropewalk.kits.messages.results import checked_result
from ropewalk.kits.sentinels import DEFAULT, Default
from ropewalk_offload.content import is_small, tokens_to_offload
from ropewalk_offload.keeping import CELL, Ages, decoded, encoded, reference_for, reference_in
from ropewalk_offload.preview import preview
from ropewalk_offload.retrieving import NAME, ArgumentError, RetrievalTool

if TYPE_CHECKING:
    from ropewalk import Agent, Tool, ToolCall, ToolResult, ToolUse
    from ropewalk.types import ToolResultContent

logger = logging.getLogger("ropewalk.offload")

MAX_RESULT_TOKENS: Final = 2_500
PREVIEW_TOKENS: Final = 1_000
EVICT_AFTER_CYCLES: Final = 20
_RETRIEVING: Final = frozenset({NAME, "retrieve_context"})
"""Tools whose results are what the model has asked for, piece by piece: they are never offloaded themselves."""

ShouldOffload = Callable[["ToolUse", "ToolResult"], bool | Awaitable[bool]]


class ContextOffloader:
    """Puts a preview and a reference in the place of tool results that are too large for the context.

    The result itself goes to a storage, from which the tool `retrieve_offloaded_content` reads it. What is stored has
    passed the agent's gates and hooks; the preview passes the policies once more. A result that cannot be stored stays
    whole. Direct calls (`agent.tool.name(...)`) give their caller everything.

    One offloader may serve many agents; each has a memory of its own then, unless a storage is given.
    """

    name = "offload"
    order = -20  # outside of the hooks of users, so that what they make of a result is what is measured

    def __init__(
        self,
        storage: Any = None,
        max_result_tokens: int = MAX_RESULT_TOKENS,
        preview_tokens: int = PREVIEW_TOKENS,
        include_retrieval_tool: bool = True,
        should_offload: ShouldOffload | None = None,
        evict_after_cycles: int | Default | None = DEFAULT,
    ) -> None:
        """Takes the bounds.

        Args:
            storage: Where results are kept: None for the agent's memory, the path of a folder, `"sandbox"` for the
                agent's sandbox, an object with `write_file` and `read_file`, or a `ContextStorage`.
            max_result_tokens: Results with more tokens are offloaded, by the kernel's estimate. One image is free.
            preview_tokens: Tokens of the result that stay; fewer than `max_result_tokens`.
            include_retrieval_tool: Whether the agent gets `retrieve_offloaded_content`.
            should_offload: Called with the tool use and a result that is too large; false keeps it. May be async.
            evict_after_cycles: Results that were not read for that many cycles are removed when another one is
                offloaded; None for never. Default 20 in memory, never in a storage that outlives the process.

        Raises:
            ValueError: One of the values is of another kind, or the preview is as large as what is kept whole.
        """
        self.max_result_tokens: Final = _checked("max_result_tokens", max_result_tokens, 1)
        self.preview_tokens: Final = _checked("preview_tokens", preview_tokens, 0)
        if self.max_result_tokens <= self.preview_tokens:
            raise ValueError(
                f"ContextOffloader: max_result_tokens={max_result_tokens} is not more than "
                f"preview_tokens={preview_tokens}: a preview has to be smaller than what it stands for"
            )

        if should_offload is not None and not callable(should_offload):
            raise ValueError(f"ContextOffloader: should_offload={should_offload!r:.200}: give a function or None")

        self._storage = _storage(storage)
        durable = self._storage is not None and getattr(self._storage, "durable", True)
        if evict_after_cycles is DEFAULT:
            evict_after_cycles = None if durable else EVICT_AFTER_CYCLES

        self.evict_after_cycles: Final = (
            None if evict_after_cycles is None else _checked("evict_after_cycles", evict_after_cycles, 1)
        )
        self._should_offload = should_offload
        self._tools: list[Tool] = [RetrievalTool(self._content)] if include_retrieval_tool else []
        self._memories: WeakKeyDictionary[Agent, MemoryStorage] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._storage!r}, {self.max_result_tokens}, {self.preview_tokens})"

    @hookimpl
    def provide_tools(self) -> list[Tool]:
        """Brings `retrieve_offloaded_content`."""
        return list(self._tools)

    @hookimpl
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Looks at each result; a short text costs a comparison."""
        result = await call_next(call)
        if is_small(result, self.max_result_tokens):
            return result

        result = checked_result(result, call.tool_use)
        tokens = tokens_to_offload(result["content"])
        if tokens <= self.max_result_tokens or call.tool_use["name"] in _RETRIEVING or call.direct:
            return result

        if self._should_offload is not None:
            answer = self._should_offload(call.tool_use, result)
            if not (await answer if inspect.isawaitable(answer) else answer):
                return result

        return await self._offloaded(call, result, tokens, agent)

    async def _offloaded(self, call: ToolCall, result: ToolResult, tokens: int, agent: Agent) -> ToolResult:
        """The preview, once the result is stored; the result itself when it cannot be, or nothing would be gained."""
        data = encoded(call, result)
        reference = reference_for(call, data)
        tool = NAME if self._tools else ""
        text = preview(result["content"], tokens, self.preview_tokens, reference, tool)
        if block_tokens({"text": text}) >= tokens:
            return result

        try:
            storage = self._storage_of(agent)
            await storage.write(reference, data)
        except MissingPluginError:
            raise  # "sandbox" without one: nothing passing
        except Exception as error:  # noqa: BLE001 - a storage of the user's may raise anything, and nothing is lost
            logger.warning(
                "offload: the result of tool %r (about %d tokens) stays in the context of agent %r, for it cannot be "
                "stored: %s",
                *(call.tool_use["name"], tokens, agent.name, error),
            )
            return result

        if self.evict_after_cycles is not None:
            ages = Ages(agent, self.evict_after_cycles)
            ages.note(reference)
            await ages.evict(storage)

        return {"toolUseId": result["toolUseId"], "status": result["status"], "content": [{"text": text}]}

    async def _content(self, agent: Agent, given: Any) -> list[ToolResultContent]:
        """The content behind what a model gave as reference.

        Raises:
            ArgumentError: There is none.
        """
        reference = reference_in(given)
        if reference is None:
            raise ArgumentError(
                f"{given!r:.200} is no reference: copy it from the preview of the result, where it stands as off_..."
            )

        try:
            data = await self._storage_of(agent).read(reference)
            content = None if data is None else decoded(data)
        except Exception as error:  # a storage of the user's may raise anything, and the model is told
            logger.warning("offload: %s cannot be read: %s", reference, error)
            raise ArgumentError(
                f"{reference} cannot be read at the moment ({error}): try again, or run the tool again"
            ) from error

        if content is None:
            raise ArgumentError(self._why_missing(reference, agent))

        if self.evict_after_cycles is not None:
            Ages(agent, self.evict_after_cycles).note(reference)

        return content

    def _why_missing(self, reference: str, agent: Agent) -> str:
        if reference in agent.plugin_state(CELL):
            return f"{reference} was kept in the memory of a process that has ended: run the tool again"

        old = f", or it was removed after {self.evict_after_cycles} cycles without being read"
        return (
            f"nothing is kept under {reference}: it is not copied exactly{old if self.evict_after_cycles else ''}; "
            "correct it, or run the tool again"
        )

    def _storage_of(self, agent: Agent) -> ContextStorage:
        if isinstance(self._storage, ContextStorage):
            return self._storage

        if self._storage is not None:
            return SandboxStorage(agent.sandbox)

        memory = self._memories.get(agent)
        if memory is None:
            memory = self._memories[agent] = MemoryStorage()
            if agent.session_manager is not None:
                logger.warning(
                    "offload: agent %r has a session, and keeps offloaded results in memory: after a restart they are "
                    "gone. Give ContextOffloader(storage=FOLDER) in plugins=[...] to keep them",
                    agent.name,
                )

        return memory


def _storage(value: Any) -> ContextStorage | str | None:
    """The storage that a value stands for; `"sandbox"` stays, as each agent has its own.

    Raises:
        ValueError: It stands for none.
    """
    if value is None or value == "memory":
        return None

    if value == "sandbox":
        return "sandbox"

    if isinstance(value, str | Path) and str(value).strip():
        return FolderStorage(value)

    if not isinstance(value, type):
        if isinstance(value, ContextStorage):
            return value

        if is_sandbox(value):
            return SandboxStorage(value)

    raise ValueError(
        f"ContextOffloader: storage={value!r:.200} is no storage: give None, the path of a folder, 'sandbox', an "
        "object with write_file and read_file, or one with async write, read, delete and list"
    )


def _checked(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"ContextOffloader: {name}={value!r:.200}: give a whole number from {least} on")

    return value
