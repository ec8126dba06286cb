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
    names = {link.plugin_name for hook in _SHAPING for link in getattr(hooks.plan, hook)}
    return {name: installed[name].version if name in installed else "" for name in sorted(names)}
