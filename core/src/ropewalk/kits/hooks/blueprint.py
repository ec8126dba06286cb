"""The compiled order of calls: which implementation of which plugin, for every hook.

pluggy validates the plugins and orders their implementations, once per combination of plugins. The result is a plan
that holds functions and positions, never instances: agents with the same kinds of plugins share one plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import MethodType
from typing import Any, Final, TypeAlias, final

import pluggy

from ropewalk.kits.hooks.deprecations import warn_of_deprecated
from ropewalk.kits.hooks.refusals import TIERS, Implementation, check_class, refusal
from ropewalk.kits.hooks.signatures import HOOKS, Call
from ropewalk.markers import PROJECT
from ropewalk.specs import SPECS

Key: TypeAlias = tuple[type, str, str, float]
"""What a plan depends on, per plugin: (type, name, tier, order)."""

PLANS: Final = 256
"""How many plans a process keeps; a combination that was dropped is compiled again (a few milliseconds)."""


@final
class Link:
    """One implementation in the order of calls.

    Attributes:
        call: Takes (plugin, *all arguments of the hook in the specification's order).
        index: The plugin's place in the agent's tuple of plugins.
        function: The implementation as it was written.
        plugin_name: The plugin's name.
        hook: The hook's name.
        tier: The plugin's tier.
        observer: Whether its errors are logged instead of raised.
    """

    __slots__ = ("call", "function", "hook", "index", "observer", "plugin_name", "tier")

    def __init__(self, call: Call, index: int, function: Call, plugin_name: str, hook: str, tier: str) -> None:
        self.call = call
        self.index = index
        self.function = function
        self.plugin_name = plugin_name
        self.hook = hook
        self.tier = tier
        self.observer = tier == "observer"

    def __repr__(self) -> str:
        return f"<{self.hook} of {self.plugin_name}>"


Links: TypeAlias = tuple[Link, ...]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The links of every hook, in calling order; an empty tuple where nobody implements it."""

    provide_model: Links = ()
    provide_method: Links = ()
    provide_sandbox: Links = ()
    adopt: Links = ()
    on_agent_ready: Links = ()
    init_agent: Links = ()
    on_close: Links = ()
    provide_commands: Links = ()
    around_model_call: Links = ()
    decide_retry: Links = ()
    provide_tool: Links = ()
    provide_tools: Links = ()
    around_tools: Links = ()
    execute_tools: Links = ()
    around_tool_call: Links = ()
    manage_context: Links = ()
    check_call: Links = ()
    admit: Links = ()
    around_invocation: Links = ()
    intervene: Links = ()
    decide_stop: Links = ()
    decide_continue: Links = ()
    on_event: Links = ()
    on_delta: Links = ()
    on_hook_call: Links = ()
    emit_checkpoint: Links = ()
    resume_run: Links = ()
    read_records: Links = ()
    write_records: Links = ()


def key_of(plugin: Any) -> Key:
    """What a plan has to know of one plugin. `tier` is the class's, `name` and `order` may be the instance's."""
    cls = type(plugin)
    return (cls, getattr(plugin, "name", None), getattr(cls, "tier", "normal"), getattr(plugin, "order", 0))  # type: ignore[return-value]


@lru_cache(maxsize=PLANS)
def blueprint(plugins: tuple[Key, ...]) -> Plan:
    """Compiles the plan of one combination of plugins.

    Args:
        plugins: The plugins' keys, in the order of the agent's instances.

    Returns:
        The plan. Links are ordered by tier, order and position; `tryfirst` and `trylast` act among equals.

    Raises:
        PluginError: A plugin does not fit the specifications; nothing is registered then.
    """
    checked = [
        {(found.hook.name, found.function): found for found in check_class(cls, name, tier)}
        for cls, name, tier, _order in plugins
    ]
    manager = pluggy.PluginManager(PROJECT)
    for group in SPECS:
        manager.add_hookspecs(group)

    places: dict[object, int] = {}
    for index, key in enumerate(plugins):
        stand_in = _StandIn(checked[index].values())
        places[stand_in] = index
        _register(manager, stand_in, key)

    def link(registered: pluggy.HookImpl, hook: str) -> Link:
        index = places[registered.plugin]
        _, name, tier, _ = plugins[index]
        found = checked[index][hook, getattr(registered.function, "__func__")]  # noqa: B009 - a bound method
        return Link(found.call, index, found.function, name, hook, tier)

    def rank(registered: pluggy.HookImpl) -> tuple[int, float, int, int]:
        index = places[registered.plugin]
        _, _, tier, order = plugins[index]
        # pluggy's own order is last registered, first called, with tryfirst and trylast before everything else; here
        # the two act among plugins of one tier and order, so that no plugin gets in front of a policy.
        return TIERS.index(tier), order, registered.trylast - registered.tryfirst, index

    def ordered(hook: str) -> Links:
        implementations = sorted(getattr(manager.hook, hook).get_hookimpls(), key=rank)
        return tuple(link(each, hook) for each in implementations)

    for (cls, name, _, _), found in zip(plugins, checked, strict=True):
        warn_of_deprecated(cls, name, found.values())

    return Plan(**{hook: ordered(hook) for hook in HOOKS})


class _StandIn:
    """Stands for a plugin in pluggy's registry: a plan must neither depend on an instance nor keep it."""

    def __init__(self, implementations: Iterable[Implementation]) -> None:
        for each in implementations:
            setattr(self, each.attribute, MethodType(each.function, self))


def _register(manager: pluggy.PluginManager, stand_in: _StandIn, key: Key) -> None:
    cls, name, _, _ = key
    try:
        manager.register(stand_in)
    except pluggy.PluginValidationError as error:  # the refusals come first, so this is a rule that only pluggy has
        raise refusal(cls, str(error), "change the method as pluggy says", name=name) from error
