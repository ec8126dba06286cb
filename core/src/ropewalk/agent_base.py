"""What an agent consists of, and the methods that need no more than that: those of plugins, and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from ropewalk.errors import ConcurrencyException, MissingPluginError, SnapshotException
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.kits.hooks.activation import require_owner
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.identity import system_blocks
from ropewalk.kits.json_values import unpacked
from ropewalk.kits.log.standing import Standing
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.message_list import MessageList
from ropewalk.kits.snapshot import Snapshot, capture, check, fields_of
from ropewalk.kits.state import JSONState
from ropewalk.kits.suspension import Suspension
from ropewalk.tools import Tool
from ropewalk.types import AgentInput, Message, SystemContentBlock

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.hooks.facade import Hooks
    from ropewalk.kits.log.fold import LogState
    from ropewalk.run import Run

T = TypeVar("T")


class AgentBase:
    """The parts of an agent; `Agent` puts them together and runs the loop on them."""

    __slots__ = ("__weakref__", "_cells", "_closed", "_runs", "_sandbox", "_system", "history", "hooks", "log",
        "name", "state", "suspension")  # fmt: skip

    hooks: Hooks
    history: History
    name: str
    state: JSONState
    suspension: Suspension | None
    """The paused run that the next call goes on with; None when there is none."""
    log: Standing | None
    """How the agent's log stands; None while it has none."""
    _cells: dict[str, JSONState] | None
    _closed: bool
    _sandbox: Any
    _runs: list[Run]
    _system: tuple[SystemContentBlock, ...]

    @property
    def messages(self) -> MessageList:
        """The conversation. Edits between runs are checked at the next run; during a run they raise HistoryError."""
        return self.history.messages

    @messages.setter
    def messages(self, messages: list[Message]) -> None:
        self.history.messages[:] = messages

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {len(self.messages)} messages>"

    def cancel(self) -> None:
        """Stops the invocation under way."""
        for run in list(self._runs):
            run.cancellation.request()

    @property
    def system_prompt(self) -> str | None:
        """The text blocks of the system prompt, joined by newlines; None when there is none."""
        texts = [block["text"] for block in self._system if "text" in block]
        return "\n".join(texts) if texts else None

    @system_prompt.setter
    def system_prompt(self, value: str | list[SystemContentBlock] | None) -> None:
        self._system = system_blocks(value)

    @property
    def system_prompt_content(self) -> list[SystemContentBlock] | None:
        """The blocks of the system prompt; None when there is none."""
        return list(self._system) or None

    def add_hook(self, callback: Callable[..., Any], event_type: Any = None, *, order: float = 0) -> None:
        """Registers a callback for typed lifecycle events (plugin hooks).

        Args:
            callback: Called with the event; may be async.
            event_type: A type, a list of types, or None to take it from the callback's annotation.
            order: Lower is called first.

        Raises:
            MissingPluginError: The plugin is not active.
            ValueError: No type is given and none can be inferred.
        """
        self._method("add_hook")(callback, event_type, order=order)

    def as_tool(
        self, *, name: str | None = None, description: str | None = None, preserve_context: bool = False
    ) -> Tool:
        """The agent as a tool for another agent (plugin subagents).

        Args:
            name: Default: the agent's name, made legal.
            description: Default: the agent's description.
            preserve_context: Whether the conversation goes on from call to call.

        Raises:
            MissingPluginError: The plugin is not active.
        """
        made: Tool = self._method("as_tool")(name=name, description=description, preserve_context=preserve_context)
        return made

    def structured_output(self, output_model: type[T], prompt: AgentInput = None) -> T:
        """`structured_output_async` for synchronous code."""
        return run_blocking(lambda: self.structured_output_async(output_model, prompt), self.cancel)

    async def structured_output_async(self, output_model: type[T], prompt: AgentInput = None) -> T:
        """Fills a pydantic model from the conversation, or from a prompt that is not kept (plugin structured).

        Raises:
            MissingPluginError: The plugin is not active.
            ValueError: There is neither a prompt nor a history.
        """
        filled: T = await self._method("structured_output_async")(output_model, prompt)
        return filled

    def _method(self, name: str) -> Callable[..., Any]:
        found = self.hooks.provide_method(name, cast("Agent", self))
        if found is None:
            wanted = f"Agent.{name}()"
            owner = require_owner(name, wanted)
            distribution = registry().installed[owner].distribution
            raise MissingPluginError(wanted, distribution, hint=f"the plugin {owner!r} is not active: add it")

        return found

    def plugin_state(self, plugin: str) -> JSONState:
        """The JSON cell that the kernel keeps for one plugin of this agent. Plugins keep no state of their own."""
        if self._cells is None:
            self._cells = {}

        cell = self._cells.get(plugin)
        if cell is None:
            cell = self._cells[plugin] = JSONState()
            if self.log is not None:
                self.log.follow(plugin, cell)

        return cell

    @property
    def sandbox(self) -> Any:
        """Where commands and code run; made by a sandbox plugin at the first use.

        Raises:
            MissingPluginError: No sandbox plugin is active.
        """
        if self._sandbox is None:
            self._sandbox = self.hooks.provide_sandbox(None, cast("Agent", self))
            if self._sandbox is None:
                raise MissingPluginError("agent.sandbox", "ropewalk-sandbox-local")

        return self._sandbox

    async def aclose(self) -> None:
        """Lets plugins clean up. Later calls raise AgentClosedError; closing again does nothing.

        Raises:
            ConcurrencyException: The agent runs; it stays open.
            ExceptionGroup: Plugins failed to clean up; all were asked.
        """
        if self._runs:
            raise ConcurrencyException(
                f"agent {self.name!r} cannot be closed while it runs: cancel() it, and close it when its call has ended"
            )

        if not self._closed:
            self._closed = True
            await self.hooks.on_close(cast("Agent", self))

    def close(self) -> None:
        """`aclose` for synchronous code."""
        run_blocking(self.aclose, lambda: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def take_snapshot(
        self,
        *,
        preset: str | None = None,
        include: list[str] | None = None,
        exclude: list[str] | None = None,
        app_data: dict[str, Any] | None = None,
    ) -> Snapshot:
        """Captures the state of the agent, which must not run.

        Args:
            preset: `"session"`: messages, state and plugin state.
            include: More fields.
            exclude: Fields to leave out.
            app_data: JSON of the application, kept as it is.

        Raises:
            SnapshotException: No field is left, a field does not exist, or the agent runs.
        """
        self._check_idle("taken")
        readers: dict[str, Callable[[], Any]] = {
            "messages": lambda: self.messages,
            "state": self.state.get,
            "plugin_state": lambda: {name: cell.get() for name, cell in (self._cells or {}).items()},
            "system_prompt": lambda: list(self._system),
            "suspension": lambda: self.suspension.to_dict() if self.suspension is not None else None,
        }
        return capture(readers, fields_of(preset, include, exclude), app_data)

    def load_snapshot(self, snapshot: Snapshot | dict[str, Any]) -> None:
        """Restores the fields that a snapshot holds, or its `to_dict()`; others stay.

        Raises:
            SnapshotException: It is of another version, or the agent runs.
            ResumeError: The paused run in it was changed, or is of another version.
        """
        self._check_idle("loaded")
        snapshot = snapshot if isinstance(snapshot, Snapshot) else Snapshot.from_dict(snapshot)
        check(snapshot)
        data = unpacked(snapshot.to_dict()["data"])
        paused = data.get("suspension")
        pause = None if paused is None else Suspension.from_dict(paused)
        if "messages" in data:
            self.history = History(data["messages"])
            self.suspension = None

        if "suspension" in data:
            self.suspension = pause

        if "state" in data:
            self.state = JSONState(data["state"])

        if "plugin_state" in data:
            self._cells = {name: JSONState(values) for name, values in data["plugin_state"].items()}

        if "system_prompt" in data:
            self._system = tuple(data["system_prompt"])

        if self.log is not None:
            self.log.agrees, self.log.nested = False, {}

    # -- the log ---------------------------------------------------------------------------------------------------

    @property
    def session_manager(self) -> Any:
        """The plugin that keeps the agent's log; None when nobody does."""
        links = self.hooks.plan.read_records
        return self.hooks.plugins[links[0].index] if links else None

    def states(self) -> dict[str | None, JSONState]:
        """The agent's own state, under None, and those of its plugins."""
        found: dict[str | None, JSONState] = {None: self.state}
        found.update(self._cells or {})
        return found

    def log_data(self) -> dict[str, Any]:
        """The data of a `snapshot_loaded` record of the agent as it is."""
        return {
            "messages": list(self.messages),
            "ids": list(self.history.ids),
            "state": self.state.get(),
            "cells": {name: cell.get() for name, cell in (self._cells or {}).items()},
            "pause": self.suspension.to_dict() if self.suspension is not None else None,
        }

    def restore(self, known: LogState) -> None:
        """Makes the agent what a log adds up to; a run that the log breaks off in can be gone on with.

        Raises:
            ResumeError: The paused run in it is of another version.
        """
        self.history = History.restored(known.messages, known.ids, known.next_id)
        self.state = JSONState(known.state)
        self._cells = {name: JSONState(values) for name, values in known.cells.items()}
        pause = known.pause
        if pause is not None and pause.kind == "crash":
            pause = replace(pause, digest=self.history.digest(), length=len(self.messages))

        self.suspension, self.log = pause, Standing()
        self.log.agrees, self.log.nested = True, known.nested
        for cell, state in self.states().items():
            self.log.follow(cell, state)

    def _check_idle(self, what: str) -> None:
        if self._runs:
            raise SnapshotException(f"a snapshot cannot be {what} while agent {self.name!r} runs: wait for the result")
