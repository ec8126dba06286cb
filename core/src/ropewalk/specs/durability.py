"""Hooks of the run log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.log.fold import LogState
    from ropewalk.kits.log.records import Record
    from ropewalk.kits.suspension import Suspension


class DurabilitySpecs(Protocol):
    """The log of a run, and the places where it may pause."""

    @hookspec(firstresult=True)
    async def emit_checkpoint(self, position: str, cycle_index: int, agent: Agent) -> Any:
        """Asked at the boundaries of a cycle with tool uses: whether the run pauses there.

        Args:
            position: `"after_model"`: the tools have not run; `"after_tools"`: the next model call has not begun.
            cycle_index: The cycle, from 0.
            agent: The agent that runs.

        Returns:
            The checkpoint that becomes `result.checkpoint`, a dict or an object with `to_dict()`; None to go on.
        """

    @hookspec(firstresult=True)
    async def resume_run(self, payload: Any, pause: Suspension | None, agent: Agent) -> bool | None:
        """Asked when the prompt is `{"checkpointResume": payload}`: whether it is the checkpoint of the agent's pause.

        The kernel checks afterwards that agent and history are as they were. Nothing may be changed here.

        Args:
            payload: What the caller gave, unchecked.
            pause: The agent's pause, or None.
            agent: The agent.

        Returns:
            True to go on, None when the payload is not this plugin's.

        Raises:
            CheckpointException: The payload is not the checkpoint at which the run waits.
        """

    @hookspec(firstresult=True)
    def read_records(self, agent: Agent) -> LogState | None:
        """Asked at the end of an agent's construction for the state that its log adds up to.

        Returns:
            The state, or None when there is no log yet; the agent keeps then what it was constructed with.
        """

    @hookspec
    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records, in order, before the run goes on. When nobody implements this hook, no record is built."""
