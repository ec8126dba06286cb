"""The marker of a pause, and the check of one that comes back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from ropewalk.kits.suspension import CheckpointException

logger = logging.getLogger("ropewalk.checkpoint")

SCHEMA_VERSION: Final = "1.0"
CheckpointPosition: TypeAlias = Literal["after_model", "after_tools"]
POSITIONS: Final = get_args(CheckpointPosition)
_KEYS: Final = ("position", "cycle_index", "schema_version")
_SHOWN: Final = 60


@dataclass(frozen=True)
class Checkpoint:
    """Where a run waits. Pass it back to go on; it holds nothing of the conversation.

    Attributes:
        position: `"after_model"`: the model has asked for tools, and none has run; `"after_tools"`: their results are
            in the history, and the next model call has not begun.
        cycle_index: The cycle, from 0.
        schema_version: Version of this shape.
    """

    position: CheckpointPosition
    cycle_index: int = 0
    schema_version: str = field(init=False, default=SCHEMA_VERSION)

    def to_dict(self) -> dict[str, Any]:
        """The checkpoint as a JSON object."""
        return {
            "position": self.position,
            "cycle_index": self.cycle_index,
            "schema_version": self.schema_version,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The checkpoint of a dict that `to_dict` made. Unknown keys are ignored, with a warning in the log.

        Raises:
            CheckpointException: It is none, or of another version.
        """
        if not isinstance(data, Mapping):
            raise CheckpointException(
                f"the checkpoint is {shown(data)}, and not a dict: pass what checkpoint.to_dict() gave"
            )

        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise CheckpointException(
                f"the checkpoint has the schema version {shown(version)}, and this is {SCHEMA_VERSION!r}: "
                "resume it with the version of ropewalk-checkpoint that made it"
            )

        missing = [key for key in _KEYS if key not in data]
        if missing:
            raise CheckpointException(f"the checkpoint has no {missing[0]!r}: pass what checkpoint.to_dict() gave")

        position, cycle_index = data["position"], data["cycle_index"]
        if not isinstance(position, str) or position not in POSITIONS:
            raise CheckpointException(
                f"the checkpoint has the position {shown(position)}: there are {' and '.join(map(repr, POSITIONS))}"
            )

        if type(cycle_index) is not int or cycle_index < 0:  # True is an int
            raise CheckpointException(
                f"the checkpoint has the cycle_index {shown(cycle_index)}: it is a whole number, from 0"
            )

        warn_of_unknown(data, _KEYS, "the checkpoint")
        return cls(position, cycle_index)  # type: ignore[arg-type]  # it is one of the two


def checkpoint_in(payload: Any) -> Checkpoint:
    """The checkpoint in the value of `{"checkpointResume": {"checkpoint": ...}}`.

    Raises:
        CheckpointException: There is none.
    """
    form = 'pass {"checkpointResume": {"checkpoint": checkpoint.to_dict()}}'
    if not isinstance(payload, Mapping):
        raise CheckpointException(f'the value of "checkpointResume" is {shown(payload)}, and not a dict: {form}')

    if payload.get("checkpoint") is None:
        raise CheckpointException(f'there is no "checkpoint" in "checkpointResume": {form}')

    checkpoint = Checkpoint.from_dict(payload["checkpoint"])
    warn_of_unknown(payload, ("checkpoint",), '"checkpointResume"')
    return checkpoint


def warn_of_unknown(data: Mapping[Any, Any], known: Collection[str], what: str) -> None:
    """Logs keys that nobody reads: they may come from a later version, or be a mistake."""
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        logger.warning("%s holds the unknown %s, which is ignored", what, ", ".join(map(repr, unknown)))


def shown(value: Any) -> str:
    """A value as an error names it; one of no simple kind by its type."""
    if value is None or isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    return f"of type {type(value).__name__}"
