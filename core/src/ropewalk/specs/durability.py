"""Hooks of the run log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.records import Record


class DurabilitySpecs(Protocol):
    """The log of a run."""

    @hookspec
    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records, in order, before the run goes on. When nobody implements this hook, no record is built."""
