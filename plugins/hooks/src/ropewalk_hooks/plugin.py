"""The plugin behind `Agent(hooks=...)` and `agent.add_hook(...)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, final

from ropewalk import hookimpl
from ropewalk.kits.hooks.adoption import InvalidParameterError
from ropewalk.kits.hooks.refusals import carries_hooks
from ropewalk.kits.lifecycle import AgentInitializedEvent, HookOrder, HookProvider
from ropewalk_hooks.dispatcher import DispatchPlugin
from ropewalk_hooks.errors import HookError
from ropewalk_hooks.inference import event_types
from ropewalk_hooks.registry import HookRegistry

if TYPE_CHECKING:
    from ropewalk.agent import Agent


@final
class HooksPlugin:
    """Registers callbacks. It has no part in runs: an agent gets the plugin that dispatches with its first callback."""

    name = "hooks"
    order = 1_000  # the other plugins register their callbacks before AgentInitializedEvent is dispatched

    @hookimpl
    def adopt(self, parameter: str, value: Any, agent: Agent) -> Any:
        """Takes `hooks=`: a list of HookProviders and callbacks.

        Raises:
            HookError: An entry is neither, or it is a callback that does not say for which events.
        """
        if parameter != "hooks":
            return None

        if not isinstance(value, list | tuple):
            raise InvalidParameterError(f"Agent(hooks={value!r:.80}): give a list of callbacks and HookProviders")

        registry = HookRegistry()
        for entry in value:
            _add(registry, entry)

        return DispatchPlugin(agent, registry) if registry.has_callbacks() else []

    @hookimpl
    def provide_method(self, name: str, agent: Agent) -> Callable[..., Any] | None:
        """Brings `Agent.add_hook`."""
        return partial(add_hook, agent) if name == "add_hook" else None

    @hookimpl
    def on_agent_ready(self, agent: Agent) -> None:
        """Tells callbacks that the agent is constructed."""
        dispatcher = find_dispatcher(agent)
        if dispatcher is not None and dispatcher.registry.has_callbacks(AgentInitializedEvent):
            dispatcher.registry.invoke_callbacks(AgentInitializedEvent(agent))


def add_hook(
    agent: Agent, callback: Callable[..., Any], event_type: Any = None, *, order: float = HookOrder.DEFAULT
) -> None:
    """Registers a callback of one agent; see `Agent.add_hook`."""
    trial = HookRegistry()  # a callback that is refused leaves the agent as it was
    trial.add_callback(event_type, callback, order=order)
    ensure_dispatcher(agent).registry.add_callback(list(event_types(callback, event_type)), callback, order=order)


def find_dispatcher(agent: Agent) -> DispatchPlugin | None:
    """The agent's dispatching plugin, if it has callbacks."""
    return next((each for each in agent.hooks.plugins if type(each) is DispatchPlugin), None)


def ensure_dispatcher(agent: Agent) -> DispatchPlugin:
    """The agent's dispatching plugin, added now if need be; a run under way takes it up at its next cycle."""
    dispatcher = find_dispatcher(agent)
    if dispatcher is None:
        dispatcher = DispatchPlugin(agent, HookRegistry())
        agent.add_plugin(dispatcher)

    return dispatcher


def _add(registry: HookRegistry, entry: Any) -> None:
    if isinstance(entry, HookProvider | type):
        registry.add_hook(entry)  # type: ignore[arg-type]  # a class is refused there
    elif callable(entry):
        registry.add_callback(None, entry)
    elif carries_hooks(type(entry)):
        raise HookError(f"Agent(hooks=[{entry!r:.80}]) is a plugin: give it in plugins=[...]")
    else:
        raise HookError(
            f"Agent(hooks=[{entry!r:.80}]) is neither a callback nor a HookProvider: give a function that takes an "
            "event, or an object with register_hooks"
        )
