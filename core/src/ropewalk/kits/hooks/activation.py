"""Which plugins an agent has: its own, those that its parameters bring, and those that are active unasked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks.adoption import adopt_all
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.gathering import Gathering
from ropewalk.kits.hooks.options import check_file
from ropewalk.kits.hooks.parameters import SWITCHED_OFF_BY_NONE, distribution_of
from ropewalk.kits.hooks.reports import describe_plugins, order_of

__all__ = ["assemble", "describe_plugins", "extend", "order_of", "owner_of", "owners_of", "require_owner"]

MEMORY = 256
"""How many assembled sets a process remembers."""


def assemble(plugins: Sequence[object] | None, given: Mapping[str, object], agent: Any) -> Hooks:
    """Puts the plugins of an agent together.

    Args:
        plugins: What stands in `plugins=`: names, classes, instances, `(name, options)` pairs, `"-name"` to switch off.
        given: Parameters of the agent that were set to something, by name.
        agent: The agent under construction, for `adopt`.

    Returns:
        The agent's hooks; the same object for every agent that asks for nothing of its own.

    Raises:
        MissingPluginError: Something was asked for that is not installed, or is switched off.
        PluginError: A plugin, an option or a parameter does not fit.
    """
    key = _key(plugins, given)
    known = registry().assembled
    if key is not None and key in known:
        return known[key]

    hooks = _gathered(() if plugins is None else plugins, given, agent)
    if key is not None:
        if len(known) >= MEMORY:
            known.clear()

        known[key] = hooks

    return hooks


def _key(plugins: Sequence[object] | None, given: Mapping[str, object]) -> Any:
    """What the result depends on when it needs neither the agent nor values of its own; None otherwise."""
    environment = (os.environ.get("ROPEWALK_PLUGINS"), os.environ.get("ROPEWALK_STRICT"))
    if not plugins and not given:
        return environment

    named = all(isinstance(entry, str) for entry in plugins or ())
    only_off = all(value is None and parameter in SWITCHED_OFF_BY_NONE for parameter, value in given.items())
    return (environment, tuple(plugins or ()), tuple(sorted(given))) if named and only_off else None


def _gathered(plugins: Sequence[object], given: Mapping[str, object], agent: Any) -> Hooks:
    if isinstance(plugins, str) or not isinstance(plugins, Sequence):
        raise PluginError(f"plugins is {plugins!r}: give a list of plugins")

    check_file()
    gathering = Gathering.from_environment()
    for entry in plugins:
        if isinstance(entry, str) and entry.startswith("-"):
            gathering.switch_off(entry[1:], f"plugins=[{entry!r}]")

    values = dict(given)
    for parameter, name in SWITCHED_OFF_BY_NONE.items():
        if parameter in values and values[parameter] is None:
            gathering.switch_off(name, f"{parameter}=None")
            del values[parameter]

    for entry in plugins:
        if not (isinstance(entry, str) and entry.startswith("-")):
            gathering.add(entry)

    gathering.add_unasked()
    if values:
        adopt_all(gathering, values, agent)

    return gathering.hooks()


def extend(hooks: Hooks, plugin: object) -> Hooks:
    """The hooks with one plugin more; see `Hooks.with_plugin`."""
    if isinstance(plugin, str) and plugin.startswith("-"):
        raise PluginError(f"{plugin!r} switches a plugin off: that is for Agent(plugins=[...]), when an agent is built")

    if isinstance(plugin, str) and any(plugin == each.name for each in hooks.plugins):
        return hooks

    gathering = Gathering.from_environment()
    gathering.own = {each.name: each for each in hooks.plugins[: hooks.own]}
    gathering.others = {each.name: each for each in hooks.plugins[hooks.own :]}
    gathering.off.update(hooks.off)
    gathering.given.update(hooks.given)
    gathering.add(plugin)
    return gathering.hooks()


def owners_of(parameter: str) -> tuple[str, ...]:
    """The installed plugins that own a parameter, or `model.<prefix>`, by name; `Agent(...)` asks them all."""
    return registry().owners.get(parameter, ())


def owner_of(parameter: str) -> str | None:
    """The first of `owners_of`; None when there is none."""
    return next(iter(owners_of(parameter)), None)


def require_owner(parameter: str, wanted: str) -> str:
    """The installed plugin that owns a parameter.

    Args:
        parameter: A parameter, or `model.<prefix>`.
        wanted: What the user wrote, for the error.

    Raises:
        MissingPluginError: It is not installed; the error says what to install.
        PluginError: Nobody is known to own it.
    """
    owner = owner_of(parameter)
    if owner is not None:
        return owner

    distribution = distribution_of(parameter)
    if distribution is not None:
        raise MissingPluginError(wanted, distribution)

    prefix = parameter.partition(".")[0] + "."
    near = [each.removeprefix(prefix) for each in registry().owners if each.startswith(prefix)]
    raise PluginError(
        f"{wanted}: no installed plugin owns {parameter!r}: "
        + (f"installed are {', '.join(sorted(near))}" if near else "install the plugin that brings it")
    )
