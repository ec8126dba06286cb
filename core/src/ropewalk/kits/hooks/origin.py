"""Which distribution a plugin came from, for error messages. Only asked when something failed."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ropewalk.kits.hooks.discovery import registry

if TYPE_CHECKING:
    from ropewalk.kits.hooks.facade import Hooks

_SHAPING: Final = (
    "around_invocation", "around_model_call", "around_tools", "around_tool_call", "intervene", "manage_context",
)  # fmt: skip


def origin_of(cls: type) -> str:
    """The distribution and version that a class came with, or its module when it came with none."""
    package = cls.__module__.partition(".")[0]
    for plugin in registry().installed.values():  # editable distributions do not list their packages
        if plugin.entry_point.module.partition(".")[0] == package:
            return f"{plugin.distribution} {plugin.version}"

    return _origin(package) or f"module {cls.__module__}"


@lru_cache(maxsize=256)
def _origin(package: str) -> str | None:
    from importlib import metadata

    if package == "__main__" or package in sys.stdlib_module_names:
        return None

    names = metadata.packages_distributions().get(package)
    return f"{names[0]} {metadata.version(names[0])}" if names else None


def versions_of(hooks: Hooks) -> dict[str, str]:
    """The versions of the plugins that shape a run, by name; empty where a plugin comes with no distribution."""
    installed = registry().installed
    packages = {plugin.entry_point.module.partition(".")[0]: plugin.version for plugin in installed.values()}
    links = {link.plugin_name: link for hook in _SHAPING for link in getattr(hooks.plan, hook)}
    found: dict[str, str] = {}
    for name, link in sorted(links.items()):
        package = type(hooks.plugins[link.index]).__module__.partition(".")[0]  # also of a plugin that a plugin brings
        found[name] = installed[name].version if name in installed else packages.get(package, "")

    return found
