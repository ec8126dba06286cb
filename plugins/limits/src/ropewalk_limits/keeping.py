"""The budget of a run that pauses: what was spent stands in the agent's cell, a shared one is remembered here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ropewalk_limits.budget import Budget

if TYPE_CHECKING:
    from ropewalk import Agent
    from ropewalk.run import Run

_CELL: Final = "limits"
_KEY: Final = "paused"
_RUN: Final = "run"

_shared: WeakKeyDictionary[Agent, tuple[str, Budget]] = WeakKeyDictionary()
"""The shared budget that each agent's paused run draws on, with the run's id: others draw on the same object."""


def keep(run: Run, shared: Budget | None, own: Budget | None) -> None:
    """Notes the budget of a run that pauses."""
    noted: dict[str, Any] = {_RUN: run.id, "limits": None, "spent": None}
    if shared is not None:
        _shared[run.agent] = (run.id, shared)
    elif own is not None:
        noted |= {"limits": dict(own.limits), "spent": own.to_dict()}

    run.agent.plugin_state(_CELL).set(_KEY, noted)


def kept(agent: Agent, run_id: str) -> dict[str, Any] | None:
    """What was noted for a run; its limits are None when they are those of a shared budget."""
    found: dict[str, Any] | None = agent.plugin_state(_CELL).get(_KEY)
    return found if found is not None and found[_RUN] == run_id else None


def remembered(agent: Agent, run_id: str) -> Budget | None:
    """The shared budget of a run, if it was paused in this process."""
    found, budget = _shared.get(agent, ("", None))
    return budget if found == run_id else None


def forget(run: Run) -> None:
    """Drops what was noted for a run, which has ended."""
    if remembered(run.agent, run.id) is not None:
        del _shared[run.agent]

    if kept(run.agent, run.id) is not None:
        run.agent.plugin_state(_CELL).delete(_KEY)
