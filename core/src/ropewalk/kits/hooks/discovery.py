"""Which plugins are installed: read from entry points once per process; nothing is imported for it.

Two distributions that bring a plugin of one name are an error when that name is asked for or would be active unasked,
and a logged warning otherwise. The same distribution seen twice on `sys.path` (an editable one and a stray egg-info)
counts once; the first one on the path wins, as with imports.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

    from ropewalk.kits.hooks.facade import Hooks

logger = logging.getLogger("ropewalk.hooks")

PLUGINS: Final = "ropewalk.plugins"
ON_DEMAND: Final = "ropewalk.on_demand"
PARAMETERS: Final = "ropewalk.parameters"


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed plugin.

    Attributes:
        name: Its name, the entry point's.
        entry_point: What to load.
        distribution: The distribution that brings it.
        version: That distribution's version.
        on_demand: Whether it is not active unasked.
        provides: The parameters it owns.
        rivals: Every distribution with its version, when several bring a plugin of this name; empty otherwise.
    """

    name: str
    entry_point: EntryPoint
    distribution: str
    version: str
    on_demand: bool
    provides: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Entry point, distribution and version, for messages."""
        return f"entry point {self.name} = {self.entry_point.value} of {self.distribution} {self.version}"

    def check_rivals(self) -> None:
        """Refuses a name that several distributions bring.

        Raises:
            PluginError: They are named, with their versions.
        """
        if self.rivals:
            raise PluginError(
                f"the plugin name {self.name!r} is brought by {' and by '.join(self.rivals)}: "
                f"uninstall all but one, or switch it off with ROPEWALK_PLUGINS=-{self.name}"
            )


@dataclass(slots=True)
class Registry:
    """What a process knows of its installed plugins. `refresh` starts a new one.

    Attributes:
        installed: The plugins by name, in alphabetical order.
        owners: Parameter to the names of the plugins that own it.
        instances: Plugin instances that agents share, by name; made on first use.
        failures: Plugins that could not be loaded, by name, with the reason.
        warned: Names that were warned about.
        policies: The policies in force, by name; None before they are read.
        assembled: Hooks that need nothing of an agent's own, by what was asked for.
    """

    installed: Mapping[str, Installed]
    owners: Mapping[str, tuple[str, ...]]
    instances: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, BaseException] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    policies: dict[str, Any] | None = None
    assembled: dict[Any, Hooks] = field(default_factory=dict)


_current: Registry | None = None
_policies: dict[str, Any] | None = None  # those that outlive a refresh


def registry() -> Registry:
    """The process's registry, read from entry points on first use."""
    global _current  # noqa: PLW0603 - one registry per process is the point
    if _current is None:
        _current = _read()
        _current.policies = _policies

    return _current


def refresh() -> None:
    """Forgets what was discovered, loaded and assembled; the next agent looks again. For tests and notebooks.

    Policies that were read stay in force.
    """
    global _current, _policies  # noqa: PLW0603
    import importlib

    importlib.invalidate_caches()
    if _current is not None:
        _policies = _current.policies

    _current = None


def _read() -> Registry:
    found: dict[str, list[Installed]] = {}
    for distribution in _distributions():
        for plugin in _plugins_of(distribution):
            found.setdefault(plugin.name, []).append(plugin)

    installed = {name: _merged(found[name]) for name in sorted(found)}
    owners: dict[str, tuple[str, ...]] = {}
    for plugin in installed.values():
        for parameter in plugin.provides:
            owners[parameter] = (*owners.get(parameter, ()), plugin.name)

    return Registry(installed, owners)


def _distributions() -> Iterator[Distribution]:
    """Distributions that have entry points of ours, each once."""
    from importlib import metadata

    seen: set[str] = set()
    for distribution in metadata.distributions():
        try:
            # The text is looked at first: parsing every distribution's entry points and names takes ten times as long.
            if "[ropewalk." not in (distribution.read_text("entry_points.txt") or ""):
                continue

            name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        except Exception as error:  # noqa: BLE001 - one broken installation must not stop every program
            _skipped(f"the metadata in {distribution.locate_file('')}", error)
            continue

        if name not in seen:
            seen.add(name)
            yield distribution


def _skipped(what: str, error: Exception) -> None:
    problem = f"{type(error).__name__}: {error}"
    logger.warning("%s cannot be read and bring no plugin (%s): install it anew", what, problem)
    logger.debug("%s cannot be read", what, exc_info=error)


def _plugins_of(distribution: Distribution) -> list[Installed]:
    name, version = distribution.metadata["Name"], distribution.version
    try:
        points = distribution.entry_points
        on_demand = {(point.name, point.value) for point in points.select(group=ON_DEMAND)}
        provided = [(point.name, point.value) for point in points.select(group=PARAMETERS)]
        plugins = list(points.select(group=PLUGINS))
    except Exception as error:  # noqa: BLE001 - as above
        _skipped(f"the entry points of {name} {version}", error)
        return []

    values = {point.value for point in plugins}
    for kind, point_name, value in [(ON_DEMAND, *each) for each in on_demand] + [
        (PARAMETERS, *each) for each in provided
    ]:
        if value not in values:
            logger.warning(
                "%s %s: %s in group %s is no plugin of its group %s", name, version, point_name, kind, PLUGINS
            )

    return [
        Installed(
            point.name,
            point,
            name,
            version,
            (point.name, point.value) in on_demand,
            tuple(parameter for parameter, value in provided if value == point.value),
        )
        for point in plugins
    ]


def _merged(claims: list[Installed]) -> Installed:
    """The one plugin of its name, or the first of several with its rivals noted."""
    claims.sort(key=lambda claim: claim.distribution)  # the order of a folder's entries is not ours
    first = claims[0]
    if len(claims) == 1:
        return first

    rivals = tuple(f"{claim.distribution} {claim.version} ({claim.entry_point.value})" for claim in claims)
    on_demand = all(claim.on_demand for claim in claims)
    if on_demand:
        logger.warning("the plugin name %s is brought by %s", first.name, " and by ".join(rivals))

    provides = tuple(dict.fromkeys(parameter for claim in claims for parameter in claim.provides))
    return replace(first, on_demand=on_demand, provides=provides, rivals=rivals)
