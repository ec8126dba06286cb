"""Parts of the hook API that are on their way out.

A plugin that uses one works as before, and whoever runs it with warnings on is told once what to change.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from ropewalk.kits.hooks.origin import origin_of
from ropewalk.kits.hooks.refusals import Implementation
from ropewalk.kits.hooks.signatures import code_of, where

Part: TypeAlias = tuple[str, str | None]
"""A hook, and the name of one of its arguments; None for the hook itself."""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What becomes of a part.

    Attributes:
        until: The version of the hook API that does not have it any more.
        fix: What an implementation does instead, after "To fix it: ".
    """

    until: int
    fix: str


DEPRECATED: Final[Mapping[Part, Deprecation]] = {}
"""What is deprecated: nothing, in the first version of the hook API."""

_warned: WeakKeyDictionary[type, set[Part]] = WeakKeyDictionary()


def deprecations_of(
    cls: type, name: str, found: Iterable[Implementation]
) -> Iterator[tuple[Implementation, Part, str]]:
    """Each use of a deprecated part in a plugin class, with what is said about it.

    Args:
        cls: The class.
        name: The plugin's name.
        found: Its implementations, as `check_class` has them.
    """
    for each in found:
        hook, code = each.hook.name, code_of(each.function)
        for argument in (None, *code.co_varnames[1 : code.co_argcount]):
            known = DEPRECATED.get((hook, argument))
            if known is not None:
                what = f"the hook {hook}" if argument is None else f"the argument {argument!r} of the hook {hook}"
                text = f"{what} is deprecated, and gone in hook API {known.until} [{where(each.function)}]"
                text = f"plugin {name!r} ({origin_of(cls)}): {text}. To fix it: {known.fix}"
                yield each, (hook, argument), text


def warn_of_deprecated(cls: type, name: str, found: Iterable[Implementation]) -> None:
    """Warns of each deprecated part that a plugin class uses, once per class."""
    if not DEPRECATED:
        return

    told = _warned.setdefault(cls, set())
    for implementation, part, text in deprecations_of(cls, name, found):
        if part not in told:
            code = code_of(implementation.function)
            # Told of the plugin's file and not of who makes the agent: Python shows deprecations to those who can act.
            warnings.warn_explicit(text, DeprecationWarning, code.co_filename, code.co_firstlineno, cls.__module__)
            told.add(part)
