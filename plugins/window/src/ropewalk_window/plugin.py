"""What runs when no `conversation_manager` is given, and what makes a plugin of one that is no plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import pydantic

from ropewalk import HistoryEdit, hookimpl
from ropewalk.kits.context import GivenManager, is_manager, steps_aside
from ropewalk_window.manager import WINDOW_SIZE, SlidingWindowConversationManager

if TYPE_CHECKING:
    from ropewalk import Agent, ContextRequest
    from ropewalk.kits.calls.edits import ContextReason


@final
class WindowPlugin(SlidingWindowConversationManager):
    """The default window, with options from file or environment. It gives way to any other conversation manager."""

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `SlidingWindowConversationManager`."""

        window_size: int = pydantic.Field(default=WINDOW_SIZE, ge=0)
        should_truncate_results: bool = True
        per_turn: bool | int = False
        pin_first: int | None = pydantic.Field(default=None, ge=0)
        compression_threshold: float | None = pydantic.Field(default=None, gt=0, le=1)

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        share = chosen.compression_threshold
        super().__init__(
            chosen.window_size,
            chosen.should_truncate_results,
            per_turn=chosen.per_turn,
            pin_first=chosen.pin_first,
            proactive_compression=None if share is None else {"compression_threshold": share},
        )
        early = share is not None or self.per_turn is not False
        self.context_reasons: Final = {"overflow", "after_invocation", *(("before_model",) if early else ())}

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Does the window's work when nobody else is there to do it."""
        if self._is_idle(request, reason) or steps_aside(agent, self):
            return None

        return await super().manage_context(request, reason, agent)

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Any:
        """Makes a plugin of an object that has `apply_management` and `reduce_context`.

        Raises:
            ValueError: It has not.
        """
        if not is_manager(value):
            raise ValueError(
                f"{parameter}={value!r} is no conversation manager: give SlidingWindowConversationManager(...), "
                "NullConversationManager(), or an object with the methods apply_management(agent) and "
                "reduce_context(agent, e)"
            )

        return GivenManager(value)
