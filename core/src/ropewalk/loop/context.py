"""Where context plugins act: their edits are carried out one plugin after the other."""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import TYPE_CHECKING

from ropewalk.kits.calls.edits import ContextReason, ContextRequest, HistoryEdit
from ropewalk.kits.messages.estimate import tokens_around

if TYPE_CHECKING:
    from ropewalk.run import Run


def count_tokens(run: Run) -> int:
    """Tokens of the run's next request."""
    history = run.history
    return history.tokens.of(history.messages, history.version, lambda: _around(run))


def _around(run: Run) -> int:
    return tokens_around(run.agent.system_blocks, run.agent.tool_registry.specs)


async def manage(run: Run, reason: ContextReason, error: Exception | None = None) -> None:
    """Asks the context plugins for edits and carries them out; what they change in `agent.messages` is theirs too.

    Raises:
        HistoryError: A plugin's edits do not fit the history.
    """
    history = run.history
    model = run.agent.resolve_model() if reason == "before_model" else run.agent.current_model
    window = getattr(model, "context_window", None)
    request = ContextRequest(history.messages, history.ids, MethodType(count_tokens, run), window, error)

    def carry_out(plugin: str, edits: Sequence[HistoryEdit] | None) -> None:
        history.adopt_edits(plugin, f"{reason}: agent.messages was edited")
        for edit in edits or ():
            history.splice(edit, plugin)

        request.ids = history.ids

    try:
        history.messages.locked = False
        await run.hooks.manage_context(request, reason, run.agent, take=carry_out)
    except BaseException:
        history.messages.undo()
        raise
    finally:
        history.messages.locked = True

    if run.journal:
        await run.commit()


async def reduce(run: Run, error: Exception) -> bool:
    """After an overflow: True when the context plugins made the request smaller."""
    if not run.hooks.managers["overflow"]:
        return False

    tokens, history = run.history.tokens, run.history
    before = tokens.size(history.messages, history.version, lambda: _around(run))
    await manage(run, "overflow", error)
    return tokens.size(history.messages, history.version, lambda: _around(run)) < before
