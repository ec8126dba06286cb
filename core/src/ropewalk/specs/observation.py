"""Hooks that follow a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.events import Event
    from ropewalk.kits.hooks.tracing import HookCall


class ObservationSpecs(Protocol):
    """Events, typed (`ropewalk.kits.events`); `event.as_dict()` is the seeds' form."""

    @hookspec
    async def on_event(self, event: Event, agent: Agent) -> None:
        """Called at boundaries: run started, cycle started, message added, tools starting, run ended or failed."""

    @hookspec
    def on_delta(self, event: Event, agent: Agent) -> None:
        """Called for every streamed piece. It is on the hot path and must not block."""

    @hookspec
    def on_hook_call(self, call: HookCall, agent: Agent) -> None:
        """Called after every call of every other hook, with plugin, hook, duration, and digests before and after.

        When nobody implements it, calls are not wrapped and cost nothing more. `agent` is None where a hook has none.
        """
