"""From a plugin's name to its instance: import, checks, options.

Instances without options of one agent are made once per process and shared: they hold configuration only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, TypeGuard

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks.discovery import Installed, registry
from ropewalk.kits.hooks.options import OptionsError, build
from ropewalk.kits.hooks.parameters import KNOWN_PLUGINS
from ropewalk.kits.hooks.refusals import carries_hooks, check_class, check_plugin, did_you_mean


def find(name: str, asked: str) -> Installed:
    """The installed plugin of a name.

    Args:
        name: The plugin's name.
        asked: Where it was asked for, as the user wrote it.

    Raises:
        MissingPluginError: It is known and not installed.
        PluginError: It is not known, or several distributions bring it.
    """
    plugin = registry().installed.get(name)
    if plugin is not None:
        plugin.check_rivals()
        return plugin

    if name in KNOWN_PLUGINS:
        raise MissingPluginError(asked, KNOWN_PLUGINS[name])

    installed = registry().installed
    raise PluginError(
        f"{asked}: there is no plugin {name!r}: {did_you_mean(name, {*installed, *KNOWN_PLUGINS})}"
        f"installed are {', '.join(installed) or 'none'}: correct the name, or install the package that brings it"
    )


def load(plugin: Installed) -> Any:
    """The shared instance of an installed plugin, made on first use.

    Raises:
        PluginError: It cannot be imported, made or registered; entry point, distribution and version are named.
    """
    state = registry()
    if plugin.name in state.instances:
        return state.instances[plugin.name]

    if plugin.name in state.failures:
        raise _broken(plugin, state.failures[plugin.name])

    try:
        instance = build(_class_of(plugin), plugin.name)
        check_plugin(instance)
    except OptionsError:  # the user's options are wrong, not the plugin
        raise
    except (Exception, SystemExit) as error:
        state.failures[plugin.name] = error
        raise _broken(plugin, error) from error

    return state.instances.setdefault(plugin.name, instance)  # two threads may get here at once


def load_with(plugin: Installed, options: Mapping[str, Any]) -> Any:
    """An instance with options of one agent; the shared one when there are none.

    Raises:
        PluginError: As for `load`, or an option is unknown or wrong.
    """
    if not options:
        return load(plugin)

    load_error = registry().failures.get(plugin.name)
    if load_error is not None:
        raise _broken(plugin, load_error)

    try:
        return build(_class_of(plugin), plugin.name, options)
    except OptionsError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(plugin, error) from error


def load_or_skip(plugin: Installed) -> Any | None:
    """The shared instance of a plugin that nobody asked for; None, after one warning, when it is broken.

    Raises:
        PluginError: It is broken and ROPEWALK_STRICT=1 is set, or several distributions bring it.
    """
    plugin.check_rivals()
    try:
        return load(plugin)
    except OptionsError:
        raise
    except PluginError as error:
        if os.environ.get("ROPEWALK_STRICT", "") not in {"", "0"}:
            raise

        warned = registry().warned
        if plugin.name not in warned:
            warned.add(plugin.name)
            warnings.warn(
                f"{error}. It is skipped; ROPEWALK_PLUGINS=-{plugin.name} switches it off, and with ROPEWALK_STRICT=1 "
                "this is an error",
                RuntimeWarning,
                stacklevel=2,
            )

        return None


def made(cls: type) -> Any:
    """An instance of a class that stands in `plugins=`, with its options from the file and the environment.

    Raises:
        PluginError: It is no plugin class, or an option is wrong.
    """
    if not carries_hooks(cls):
        raise PluginError(f"{cls!r} is no plugin: a plugin class has a `name` and @hookimpl methods")

    name: Any = getattr(cls, "name", None)
    check_class(cls, name, getattr(cls, "tier", "normal"))
    return build(cls, name)


def is_pair(value: object) -> TypeGuard[tuple[str, Mapping[str, Any]]]:
    """Whether a value is `(plugin name, options)`."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], Mapping)  # noqa: PLR2004


def switched_off(asked: str, name: str, by: str) -> MissingPluginError:
    """The error of asking for a plugin that is switched off."""
    plugin = registry().installed.get(name)
    distribution = plugin.distribution if plugin is not None else KNOWN_PLUGINS.get(name, name)
    return MissingPluginError(
        asked, distribution, hint=f"plugin {name!r} is switched off by {by}: remove one of the two"
    )


def _class_of(plugin: Installed) -> type:
    cls = plugin.entry_point.load()
    if not isinstance(cls, type):
        raise PluginError(f"{plugin.entry_point.value} is {type(cls).__name__} and not a plugin class")

    name = getattr(cls, "name", None)
    check_class(cls, name, getattr(cls, "tier", "normal"))
    if name != plugin.name:
        raise PluginError(f"the class is named {name!r}: give the entry point and the class one name")

    return cls


def _broken(plugin: Installed, error: BaseException) -> PluginError:
    return PluginError(f"plugin {plugin.name!r} cannot be loaded ({plugin.label}): {type(error).__name__}: {error}")
