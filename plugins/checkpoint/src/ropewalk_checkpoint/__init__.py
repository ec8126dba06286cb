"""Checkpoints: an agent pauses at the boundaries of its cycles, and goes on when it is told to."""

from __future__ import annotations

from ropewalk.kits.suspension import CheckpointException
from ropewalk_checkpoint.checkpoint import Checkpoint, CheckpointPosition
from ropewalk_checkpoint.plugin import CheckpointPlugin

__all__ = ["Checkpoint", "CheckpointException", "CheckpointPlugin", "CheckpointPosition"]
