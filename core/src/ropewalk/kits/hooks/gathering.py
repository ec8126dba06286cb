"""The plugins of one agent while they are gathered: who is in, who is out, and why."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.blueprint import blueprint, key_of
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.facade import NOTHING, Hooks
from ropewalk.kits.hooks.loading import find, is_pair, load_or_skip, load_with, made, switched_off
from ropewalk.kits.hooks.parameters import KNOWN_PLUGINS
from ropewalk.kits.hooks.policy import is_policy, policies
from ropewalk.kits.hooks.refusals import check_plugin, did_you_mean

VARIABLE: Final = "ROPEWALK_PLUGINS"


@dataclass(slots=True)
class Gathering:
    """What was asked for so far.

    Attributes:
        off: Plugins that are switched off, with what did it.
        asked: Plugins that the environment adds.
        unasked: Whether plugins are active that nobody asked for.
        own: The agent's own, by name.
        others: Active unasked, or to answer for a parameter; the agent's own replace them.
        given: Parameters whose value is a plugin, with its name.
    """

    off: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    unasked: bool = True
    own: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_environment(cls) -> Gathering:
        """Starts from what ROPEWALK_PLUGINS says: `-name`, `name` to add, `none` for no plugin unasked."""
        gathering = cls()
        for entry in filter(None, map(str.strip, os.environ.get("ROPEWALK_PLUGINS", "").split(","))):
            if entry == "none":
                gathering.unasked = False
            elif entry.startswith("-"):
                gathering.switch_off(entry[1:], VARIABLE)
            else:
                gathering.asked.append(entry)

        return gathering

    def hooks(self) -> Hooks:
        """The result."""
        others = {**self.others, **policies()}
        plugins = (
            *self.own.values(),
            *(each for name, each in others.items() if name not in self.own),
        )  # each was checked when it was made or added
        plan = blueprint(tuple(map(key_of, plugins)))
        return Hooks(plan, plugins, len(self.own), dict(self.off) or NOTHING, dict(self.given) or NOTHING)

    def switch_off(self, name: str, by: str) -> None:
        """Keeps an installed plugin out. A name that is not installed is fine if it exists at all."""
        if is_policy(name, by):
            return

        known = {*registry().installed, *KNOWN_PLUGINS}
        if name not in known:
            message = (
                f"{by} switches off {name!r} and there is no such plugin: {did_you_mean(name, known)}"
                f"installed are {', '.join(registry().installed) or 'none'}"
            )
            if by != VARIABLE:
                raise PluginError(message)

            # One environment may serve programs with different plugins, and a switch may outlive its plugin.
            if name not in registry().warned:
                registry().warned.add(name)
                warnings.warn(message, RuntimeWarning, stacklevel=2)

        self.off.setdefault(name, by)

    def add(self, entry: object) -> None:
        """Adds an entry of `plugins=`."""
        if isinstance(entry, str):
            self.own.setdefault(entry, self.named(entry, f"plugins=[{entry!r}]"))
        elif isinstance(entry, tuple):
            if not is_pair(entry):
                raise PluginError(f"plugins=[{entry!r}]: a tuple is (name, options), the options a dict")

            name, values = entry
            self.add_instance(self.named(name, f"plugins=[({name!r}, ...)]", values), "plugins=")
        elif isinstance(entry, type):
            self.add_instance(made(entry), "plugins=")
        else:
            self.add_instance(entry, "plugins=")

    def add_instance(self, plugin: object, source: str) -> None:
        """Adds a plugin of the agent's own; one object may come twice, two of one name may not."""
        name = check_plugin(plugin)
        if plugin is not policies().get(name) and is_policy(name, source):
            raise PluginError(f"{source} holds a plugin named {name!r}, the name of a policy in force: rename it")

        present = self.own.setdefault(name, plugin)
        if present is not plugin:
            raise PluginError(
                f"two plugins of this agent are named {name!r}: one of class {type(present).__qualname__} and, from "
                f"{source}, one of class {type(plugin).__qualname__}: leave one out or rename it"
            )

    def named(self, name: str, asked: str, values: Mapping[str, Any] | None = None) -> Any:
        """The instance of an installed plugin that was asked for."""
        if name in self.off:
            raise switched_off(asked, name, self.off[name])

        return load_with(find(name, asked), values or {})

    def add_unasked(self) -> None:
        """Adds what the environment asks for, and the installed plugins that are active unasked.

        What an agent switches off stays off: the environment adds plugins for agents that do not mind.
        """
        for name in self.asked:
            if self.off.get(name, VARIABLE) == VARIABLE:
                self.others.setdefault(name, self.named(name, f"{VARIABLE}={name}"))

        for name, plugin in registry().installed.items() if self.unasked else ():
            if plugin.on_demand or name in self.off or name in self.own or name in self.others:
                continue

            instance = load_or_skip(plugin)
            if instance is not None:
                self.others[name] = instance
