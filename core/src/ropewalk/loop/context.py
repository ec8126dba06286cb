"""Where context plugins act: their edits are carried out one plugin after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.edits import ContextReason, ContextRequest
from ropewalk.kits.messages.estimate import estimate_tokens

if TYPE_CHECKING:
    from ropewalk.run import Run


async def manage(run: Run, reason: ContextReason, error: Exception | None = None) -> None:
    """Asks the context plugins for edits and carries them out.

    Raises:
        HistoryError: A plugin's edits do not fit the history.
    """
    history = run.history

    def count() -> int:
        return estimate_tokens(history.messages)

    window = getattr(run.agent.current_model, "context_window", None)
    request = ContextRequest(history.view(), history.ids, count, window, error)
    async for plugin, edits in run.hooks.manage_context(request, reason, run.agent):
        for edit in edits:
            history.splice(edit, plugin)

        request.messages, request.ids = history.view(), history.ids

    await run.commit()


async def reduce(run: Run, error: Exception) -> bool:
    """After an overflow: True when the context plugins made the request smaller."""
    if not run.hooks.plan.manage_context:
        return False

    before = estimate_tokens(run.history.messages)
    await manage(run, "overflow", error)
    return estimate_tokens(run.history.messages) < before
