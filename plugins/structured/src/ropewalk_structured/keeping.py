"""The output of a run that pauses: how far it is stands in the agent's cell, the model is remembered in the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ropewalk import ResumeError
from ropewalk.kits.json_values import strict_json

if TYPE_CHECKING:
    from ropewalk import Agent, Suspension
    from ropewalk.run import Run
    from ropewalk_structured.session import Session
    from ropewalk_structured.target import Target

_CELL: Final = "structured"
_KEY: Final = "paused"
_RUN: Final = "run"

_targets: WeakKeyDictionary[Agent, tuple[str, Target]] = WeakKeyDictionary()
"""The output model of each agent's run under way, with the run's id: a class is nothing that can be stored."""


def keep(run: Run, session: Session) -> None:
    """Notes how far the output of a run is."""
    run.agent.plugin_state(_CELL).set(_KEY, {_RUN: run.id, **strict_json(session.to_dict())})


def kept(agent: Agent, run_id: str) -> dict[str, Any] | None:
    """What was noted for a run; None when it has no output model."""
    found: dict[str, Any] | None = agent.plugin_state(_CELL).get(_KEY)
    return found if found is not None and found[_RUN] == run_id else None


def remember(run: Run, target: Target) -> None:
    """Remembers the output model of a run until it ends."""
    _targets[run.agent] = (run.id, target)


def remembered(agent: Agent, run_id: str) -> Target | None:
    """The output model of a run, if the run began in this process."""
    found, target = _targets.get(agent, ("", None))
    return target if found == run_id else None


def forget(run: Run) -> None:
    """Drops everything about a run, which has ended. Another one of the agent may be under way beside it."""
    if remembered(run.agent, run.id) is not None:
        del _targets[run.agent]

    if kept(run.agent, run.id) is not None:
        run.agent.plugin_state(_CELL).delete(_KEY)


def target_to_resume(agent: Agent, pause: Suspension, given: Target | None, own: Target | None) -> Target | None:
    """The output model of a run that is to go on.

    Args:
        agent: The agent.
        pause: Where the run waits.
        given: What the caller gave now.
        own: The agent's own output model.

    Raises:
        ResumeError: The run has an output model, and it is another one or is not known here.
    """
    noted = kept(agent, pause.run)
    found = given or remembered(agent, pause.run) or own
    if noted is None or (found is not None and found.name == noted["model"]):
        return found

    is_given = f"structured_output_model is {given.name}" if given is not None else "structured_output_model is missing"
    raise ResumeError(
        f"the paused run fills the output model {noted['model']!r}, and {is_given}: "
        f"pass structured_output_model={noted['model']} again"
    )
