"""The hook that keeps the history within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.edits import ContextReason, ContextRequest, HistoryEdit


class ContextSpecs(Protocol):
    """Context management."""

    @hookspec
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Proposes edits of the history: before each model call, after an overflow, after tools, after an invocation.

        The kernel carries out each implementation's edits before it asks the next one, keeps the history valid, and
        records the splices with the plugin's name and the reason: `"before_model"`, `"overflow"`, `"after_tools"` or
        `"after_invocation"`. A plugin that acts for some reasons only names them in an attribute, as in
        `context_reasons = {"overflow"}`, and agents do not pay for the others.
        """
