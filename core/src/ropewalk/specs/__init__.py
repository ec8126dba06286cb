"""Every hook of Ropewalk, by theme. `async def` is awaited, `def` is synchronous, `call_next` makes a chain.

Implementations take any subset of a hook's arguments by name; returning None means "no opinion".
"""

from __future__ import annotations

from ropewalk.specs.assembly import AssemblySpecs
from ropewalk.specs.context import ContextSpecs
from ropewalk.specs.control import ControlSpecs
from ropewalk.specs.durability import DurabilitySpecs
from ropewalk.specs.model import ModelSpecs
from ropewalk.specs.observation import ObservationSpecs
from ropewalk.specs.tools import ToolSpecs

SPECS: tuple[type, ...] = (
    AssemblySpecs,
    ModelSpecs,
    ToolSpecs,
    ContextSpecs,
    ControlSpecs,
    ObservationSpecs,
    DurabilitySpecs,
)

__all__ = [
    "SPECS",
    "AssemblySpecs",
    "ContextSpecs",
    "ControlSpecs",
    "DurabilitySpecs",
    "ModelSpecs",
    "ObservationSpecs",
    "ToolSpecs",
]
