"""Every refusal of a plugin class. Registering one stops at the first; whoever writes a plugin wants them all."""

from __future__ import annotations

import types
from typing import Any

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.deprecations import deprecations_of
from ropewalk.kits.hooks.refusals import TIERS, check_class
from ropewalk.markers import API_VERSION


def refusals_of(cls: type[Any]) -> list[str]:
    """What is wrong with a plugin class, a sentence each; empty when it fits.

    Identity and API range are looked at without any method, then each method without the others.
    """
    attributes = dict.fromkeys(
        name for each in cls.__mro__[:-1] for name in vars(each) if not name.startswith("__") and name not in _IDENTITY
    )
    none = dict.fromkeys(attributes)
    name, tier = getattr(cls, "name", None), getattr(cls, "tier", "normal")
    label = name if _is_name(name) else "unnamed"
    found = [
        _refusal(cls, none, name, "normal"),
        _refusal(cls, none, label, tier),
        _refusal(cls, {**none, "api": getattr(cls, "api", API_VERSION)}, label, "normal"),
    ]
    known_tier = tier if tier in TIERS else "normal"
    for attribute in attributes:
        others = {other: None for other in attributes if other != attribute}
        found.append(_refusal(cls, others, label, known_tier))

    return list(dict.fromkeys(text for text in found if text is not None))


def implemented_by(cls: type[Any]) -> list[str]:
    """The hooks that a class that fits implements."""
    name: Any = getattr(cls, "name", None)
    return [found.hook.name for found in check_class(cls, name, getattr(cls, "tier", "normal"))]


def deprecations_in(cls: type[Any]) -> list[str]:
    """The parts of the hook API that a class that fits uses and that are on their way out, a sentence each."""
    name: Any = getattr(cls, "name", None)
    found = check_class(cls, name, getattr(cls, "tier", "normal"))
    return [text for _, _, text in deprecations_of(cls, name, found)]


_IDENTITY = frozenset({"api", "name", "order", "tier"})


def _refusal(cls: type[Any], body: dict[str, Any], name: object, tier: object) -> str | None:
    """What is refused about the class with some attributes put out of force; None there takes a hook back."""
    whole = {"api": API_VERSION, **body}
    stand_in = types.new_class(cls.__name__, (cls,), exec_body=lambda namespace: namespace.update(whole))
    stand_in.__module__, stand_in.__qualname__ = cls.__module__, cls.__qualname__
    try:
        check_class(stand_in, name, tier)
    except PluginError as error:
        return str(error)

    return None


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.replace("-", "a").replace("_", "a").isalnum() and name[:1].isalpha()
