"""When a run pauses, and whether it may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ropewalk import Suspension, hookimpl
from ropewalk.kits.suspension import CheckpointException
from ropewalk_checkpoint.checkpoint import Checkpoint, checkpoint_in

if TYPE_CHECKING:
    from ropewalk_checkpoint.checkpoint import CheckpointPosition


@final
class CheckpointPlugin:
    """Pauses each run after the model has asked for tools, and after the tools; active when asked for."""

    name = "checkpoint"

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Any:
        """Takes `checkpointing`.

        Raises:
            ValueError: The value is no flag.
        """
        if value is True:
            return self

        if value is False or value is None:
            return NoCheckpoints()

        raise ValueError(f"{parameter}={value!r:.200} is no flag: give True or False")

    @hookimpl
    async def emit_checkpoint(self, position: CheckpointPosition, cycle_index: int) -> Checkpoint:
        """Pauses at every boundary."""
        return Checkpoint(position, cycle_index)

    @hookimpl
    async def resume_run(self, payload: Any, pause: Suspension | None) -> bool:
        """Lets the run go on when the payload is the checkpoint that it waits at.

        Raises:
            CheckpointException: It is malformed, or is another one.
        """
        given = checkpoint_in(payload)
        if pause is None:
            raise CheckpointException(
                "no run of this agent waits at a checkpoint: it was resumed before, belongs to another agent, or the "
                "agent's snapshot or session is not loaded; pass a prompt, or None to go on with the history"
            )

        if pause.kind != "checkpoint":
            waits = "answers" if pause.kind == "interrupt" else "a new prompt, or None"
            raise CheckpointException(
                f"the run does not wait at a checkpoint but for {waits}: pass {waits}"
                + (' as [{"interruptResponse": {"interruptId": ..., "response": ...}}]' if waits == "answers" else "")
            )

        current = Checkpoint.from_dict(pause.checkpoint)
        if given != current:
            raise CheckpointException(
                f"the checkpoint is that {_told(given)}, and the run waits {_told(current)}: "
                "pass the checkpoint of the last result"
            )

        return True


@final
class NoCheckpoints:
    """Takes the plugin's place where checkpoints are switched off."""

    name = "checkpoint"

    @hookimpl
    def on_agent_ready(self) -> None:
        """Nothing; a plugin has at least one hook."""


def _told(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.position} of cycle {checkpoint.cycle_index}"
