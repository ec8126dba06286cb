"""Hooks that put an agent together and take it apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.model import Model


class AssemblySpecs(Protocol):
    """Construction, start and end of an agent."""

    @hookspec(firstresult=True)
    def provide_model(self, spec: str | None, agent: Agent) -> Model | None:
        """Turns a model string into a model, at the first model call of an agent.

        Args:
            spec: `"provider:model-id"`, a bare model id, or None for the default.
            agent: The agent that needs the model.

        Returns:
            A model, or None when the string is not this plugin's.
        """

    @hookspec(firstresult=True)
    def provide_method(self, name: str, agent: Agent) -> Callable[..., Any] | None:
        """Brings what a method of Agent does that a plugin owns: `add_hook`, `as_tool`, `structured_output_async`.

        Args:
            name: The method's name.
            agent: The agent it was called on.

        Returns:
            A function that takes the method's arguments, or None when the method is not this plugin's.
        """

    @hookspec(firstresult=True)
    def provide_sandbox(self, spec: Any, agent: Agent) -> Any:
        """Makes the sandbox of an agent, at the first use of `agent.sandbox`.

        Args:
            spec: What the user gave as `sandbox=`, or None for the default.
            agent: The agent that needs it.

        Returns:
            A sandbox, or None when the spec is not this plugin's.
        """

    @hookspec(firstresult=True)
    def adopt(self, parameter: str, value: Any, agent: Agent) -> Any:
        """Turns the value of an Agent parameter into plugins, while the agent is built.

        Asked of the plugin that owns the parameter (entry-point group `ropewalk.parameters`), unless the value is a
        plugin itself.

        Args:
            parameter: Name of the constructor's parameter.
            value: What the user gave.
            agent: The agent under construction; only its plain parameters are set.

        Returns:
            A plugin, a list of plugins or `(plugin name, options)` pairs, `[]` for "understood, nothing to add", or
            None for "not mine".
        """

    @hookspec
    def on_agent_ready(self, agent: Agent) -> None:
        """Called at the end of an agent's construction, when its parameters and tools are set."""

    @hookspec
    async def init_agent(self, agent: Agent) -> None:
        """Called once, before the first run of an agent; the place for what must be awaited."""

    @hookspec
    async def on_close(self, agent: Agent) -> None:
        """Called when the agent is closed. Every implementation runs; their errors are raised together."""

    @hookspec
    def provide_commands(self) -> list[Any]:
        """Brings commands for the `ropewalk` program: a list of click commands."""
