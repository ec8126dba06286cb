"""The summarizing manager by name, with options from file, environment or `plugins=`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import HistoryEdit, hookimpl
from ropewalk.kits.context import steps_aside
from ropewalk_summarize.manager import PRESERVE_RECENT, SUMMARY_RATIO, SummarizingConversationManager

if TYPE_CHECKING:
    from ropewalk import Agent, ContextRequest
    from ropewalk.kits.calls.edits import ContextReason


@final
class SummarizePlugin(SummarizingConversationManager):
    """Active when it is asked for, by name or by another plugin."""

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `SummarizingConversationManager`.

        Attributes:
            gives_way: Whether it does nothing while the agent was given another conversation manager.
        """

        summary_ratio: float = pydantic.Field(default=SUMMARY_RATIO, allow_inf_nan=False)
        preserve_recent_messages: int = pydantic.Field(default=PRESERVE_RECENT, ge=0)
        summarization_agent: Any = None
        summarization_system_prompt: str | None = None
        pin_first: int | None = pydantic.Field(default=None, ge=0)
        compression_threshold: float | None = pydantic.Field(default=None, gt=0, le=1)
        gives_way: bool = False

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        share = chosen.compression_threshold
        super().__init__(
            chosen.summary_ratio,
            chosen.preserve_recent_messages,
            chosen.summarization_agent,
            chosen.summarization_system_prompt,
            pin_first=chosen.pin_first,
            proactive_compression=None if share is None else {"compression_threshold": share},
        )
        self._gives_way = chosen.gives_way

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Does the work, unless it gives way to the manager that the caller has chosen."""
        if self._gives_way and steps_aside(agent, self, own=True):
            return None

        return await super().manage_context(request, reason, agent)
