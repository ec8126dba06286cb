"""What is installed and active, for the command line and for bug reports."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.discovery import Installed, registry
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.gathering import Gathering
from ropewalk.kits.hooks.loading import load
from ropewalk.kits.hooks.parameters import BUNDLED
from ropewalk.kits.hooks.refusals import did_you_mean
from ropewalk.kits.hooks.signatures import HOOKS


@dataclass(frozen=True, slots=True)
class PluginReport:
    """One installed plugin, seen from outside.

    Attributes:
        name: The plugin's name.
        distribution: The distribution that brings it.
        version: That distribution's version.
        bundled: Whether `pip install ropewalk` brings it.
        on_demand: Whether it is not active unasked.
        active: Whether an agent without `plugins=` has it.
        provides: The parameters and model or sandbox prefixes it owns.
        error: Why it cannot be used; None when nothing is known to be wrong: what is not active is not loaded.
    """

    name: str
    distribution: str
    version: str
    bundled: bool
    on_demand: bool
    active: bool
    provides: tuple[str, ...]
    error: str | None


def describe_plugins() -> list[PluginReport]:
    """Every installed plugin by name, as an agent of this process and environment would have it."""
    gathering = Gathering.from_environment()
    return [_described(plugin, gathering) for plugin in registry().installed.values()]


def order_of(hook: str, hooks: Hooks) -> list[str]:
    """The plugins that implement a hook, in calling order; of a chain, the outermost first.

    Raises:
        PluginError: There is no such hook.
    """
    if hook not in HOOKS:
        raise PluginError(
            f"there is no hook {hook!r}: {did_you_mean(hook, HOOKS)}the hooks are {', '.join(sorted(HOOKS))}"
        )

    return [link.plugin_name for link in getattr(hooks.plan, hook)]


def _described(plugin: Installed, gathering: Gathering) -> PluginReport:
    unasked = gathering.unasked and not plugin.on_demand
    active = plugin.name not in gathering.off and (unasked or plugin.name in gathering.asked)
    error: str | None = None
    try:
        plugin.check_rivals()
        if active:
            load(plugin)
    except PluginError as problem:
        error = str(problem)

    return PluginReport(
        plugin.name,
        plugin.distribution,
        plugin.version,
        plugin.name in BUNDLED and plugin.distribution.startswith("ropewalk-"),
        plugin.on_demand,
        active and error is None,
        plugin.provides,
        error,
    )
