"""What the parameters of an agent mean: a value that has hooks is a plugin, any other goes to the parameter's owner."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import blueprint, key_of
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.gathering import Gathering
from ropewalk.kits.hooks.loading import find, is_pair, load, made, switched_off
from ropewalk.kits.hooks.parameters import PARAMETER_VALUES, REQUIRED_HOOKS, distribution_of
from ropewalk.kits.hooks.refusals import carries_hooks

DEPTH: Final = 8
"""How deep answers may be nested, and agents be built inside `adopt`."""

_under_way: ContextVar[tuple[str, ...]] = ContextVar("ropewalk_adoptions", default=())


class InvalidParameterError(PluginError, ValueError):
    """No installed owner of a parameter of the agent understands its value."""


def adopt_all(gathering: Gathering, values: Mapping[str, object], agent: Any) -> None:
    """Turns values of parameters into plugins and adds them.

    A plugin that is given as a value takes the place of the parameter's owner, unless that one is the agent's own.
    Pairs and names in answers are defaults of the owner: they give way to a plugin of that name in `plugins=`.

    Args:
        gathering: Where the plugins are added.
        values: The parameters that were set, by name.
        agent: The agent under construction.

    Raises:
        MissingPluginError: The owner of a parameter is not installed, or is switched off.
        InvalidParameterError: The owner does not understand the value, or it is a plugin that cannot do its work.
        PluginError: The owner's answer is not made of plugins.
    """
    questions: dict[str, object] = {}
    for parameter, value in values.items():
        if not isinstance(value, type) and carries_hooks(type(value)):
            gathering.add_instance(value, f"{parameter}=")
            _check_fit(parameter, value)
            gathering.given[parameter] = cast("Any", value).name
            for owner in registry().owners.get(parameter, ()):
                gathering.others.pop(owner, None)
        else:
            questions[parameter] = value

    adoption = _Adoption(gathering, agent)
    for parameter, value in questions.items():
        adoption.ask(parameter, value)

    adoption.finish()


def _check_fit(parameter: str, plugin: Any) -> None:
    """Refuses a plugin that would take the owner's place and not do its work."""
    wanted = REQUIRED_HOOKS.get(parameter, ())
    plan = blueprint((key_of(plugin),))
    if wanted and not any(getattr(plan, hook) for hook in wanted):
        cls = type(plugin)
        raise InvalidParameterError(
            f"{_spelled(parameter)}: plugin {plugin.name!r} ({cls.__module__}.{cls.__qualname__}) has no hook "
            f"{' or '.join(wanted)}, so nobody would answer for the parameter. To fix it: give the plugin in "
            f"plugins=[...], and here one that implements {' or '.join(wanted)}"
        )


@dataclass(slots=True)
class _Adoption:
    gathering: Gathering
    agent: Any
    defaults: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)

    def ask(self, parameter: str, value: object) -> None:
        """Asks the owners of one parameter until one of them has an answer, and takes it."""
        owners = registry().owners.get(parameter, ())
        off = [owner for owner in owners if owner in self.gathering.off and owner not in self.gathering.own]
        for owner in owners:
            if owner in off:
                continue

            plugin = self._owner(owner, parameter)
            answer = self._answer(owner, plugin, parameter, value)
            if answer is not None:
                if owner not in self.gathering.own:
                    self.gathering.others[owner] = plugin

                self._take(answer, owner, plugin, (parameter,))
                return

        raise self._unanswered(parameter, value, owners, off)

    def finish(self) -> None:
        """Adds the plugins that answers named."""
        for name, (options, parameter) in self.defaults.items():
            gathering = self.gathering
            if name not in gathering.own and (options or name not in gathering.others):
                gathering.add_instance(gathering.named(name, _spelled(parameter), options), _spelled(parameter))

    def _owner(self, owner: str, parameter: str) -> Any:
        active = self.gathering.own.get(owner) or self.gathering.others.get(owner)
        return active or load(find(owner, _spelled(parameter)))

    def _answer(self, owner: str, plugin: Any, parameter: str, value: object) -> Any:
        links = blueprint((key_of(plugin),)).adopt
        if not links:
            raise PluginError(
                f"plugin {owner!r} owns {_spelled(parameter)} and has no hook `adopt` to take its value with"
            )

        path = (*_under_way.get(), f"{parameter} -> {owner}")
        if len(path) > DEPTH:
            raise PluginError(
                f"adoption goes in a circle ({', '.join(path[-2:])} ...): `adopt` must not build an agent with the "
                "parameter that it is asked for"
            )

        token = _under_way.set(path)
        try:
            return verbs.call_first(links, (plugin,), (parameter, value, self.agent))
        finally:
            _under_way.reset(token)

    def _take(self, answer: Any, owner: str, plugin: Any, path: tuple[str, ...]) -> None:
        """Takes an answer apart: plugins are added at once, pairs and names at the end."""
        parameter = path[0]
        if isinstance(answer, str):
            self._default(answer, {}, parameter)
        elif is_pair(answer):
            self._default(*answer, parameter)
        elif isinstance(answer, list | tuple):
            if len(path) > DEPTH:
                raise PluginError(
                    f"the answer of plugin {owner!r} to {_spelled(parameter)} is nested in itself or too deep"
                )

            for each in answer:
                self._take(each, owner, plugin, (*path, owner))
        elif answer is not plugin:
            self._take_plugin(answer, owner, plugin, parameter)

    def _take_plugin(self, answer: Any, owner: str, plugin: Any, parameter: str) -> None:
        if not carries_hooks(answer if isinstance(answer, type) else type(answer)):
            raise PluginError(
                f"plugin {owner!r} answered {_spelled(parameter)} with {answer!r}: `adopt` returns plugins, names, "
                "(name, options) pairs or a list of them"
            )

        instance = made(answer) if isinstance(answer, type) else answer
        named_by_user = self.gathering.own.get(owner)
        if named_by_user is plugin and plugin is registry().instances.get(owner) and instance.name == owner:
            # plugins=["console"], callback_handler=f: the configured one replaces the bare one
            del self.gathering.own[owner]

        self.gathering.add_instance(instance, _spelled(parameter))

    def _default(self, name: str, options: Mapping[str, Any], parameter: str) -> None:
        present = self.defaults.setdefault(name, (options, parameter))
        if present[0] != options:
            raise PluginError(
                f"{_spelled(present[1])} and {_spelled(parameter)} want different options for plugin {name!r}: "
                f"give it in plugins=[({name!r}, {{...}})]"
            )

    def _unanswered(self, parameter: str, value: object, owners: tuple[str, ...], off: list[str]) -> PluginError:
        if off:
            return switched_off(_spelled(parameter), off[0], self.gathering.off[off[0]])

        distribution = distribution_of(parameter, value)
        installed = {registry().installed[owner].distribution for owner in owners}
        special = isinstance(value, str) and (parameter, value) in PARAMETER_VALUES
        if distribution is not None and (not owners or (special and distribution not in installed)):
            return MissingPluginError(_spelled(parameter), distribution)

        if not owners:
            return PluginError(f"{_spelled(parameter)}: no installed plugin owns this parameter, and none is known to")

        return InvalidParameterError(
            f"{_spelled(parameter)}: {' and '.join(map(repr, owners))} cannot take a value of type "
            f"{type(value).__module__}.{type(value).__qualname__}: see the README of {', '.join(sorted(installed))}"
        )


def _spelled(parameter: str) -> str:
    return f"Agent({parameter}=...)"
