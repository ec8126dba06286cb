"""What a paused run is: the questions it waits with, its state as JSON, and what a resume is checked against."""

from __future__ import annotations

from ropewalk.kits.suspension.errors import (
    CheckpointException,
    NothingToResumeError,
    ResumeError,
    ResumeTypeError,
    ResumeValueError,
    UnknownInterruptError,
)
from ropewalk.kits.suspension.interrupts import Interrupt, Suspend, interrupt_id
from ropewalk.kits.suspension.state import Effect, Suspension

__all__ = [
    "CheckpointException",
    "Effect",
    "Interrupt",
    "NothingToResumeError",
    "ResumeError",
    "ResumeTypeError",
    "ResumeValueError",
    "Suspend",
    "Suspension",
    "UnknownInterruptError",
    "interrupt_id",
]
