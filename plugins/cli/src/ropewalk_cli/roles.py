"""What a plugin must have for the parameters that its entry points say it owns."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from ropewalk import Agent
from ropewalk.kits.hooks.call_options import OWNED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_OF_PREFIXES: Final[Mapping[str, str]] = {
    "model": "provide_model",
    "sandbox": "provide_sandbox",
    "session": "open_store",
}
"""The beginning of `model.<prefix>` and the like, to the method that is called for it; `open_store` is no hook."""


def missing_for(cls: type[Any], hooks: Iterable[str], parameters: Iterable[str]) -> Iterator[str]:
    """What is wrong with the parameters that a plugin owns, a sentence each.

    Args:
        cls: The plugin class.
        hooks: The hooks that it implements.
        parameters: What it owns, as in the group `ropewalk.parameters`.
    """
    name, implemented = getattr(cls, "name", None), set(hooks)
    for parameter in parameters:
        wanted = _wanted(parameter)
        if wanted is None:
            yield (
                f"plugin {name!r} owns {parameter!r}, which nobody asks for: own a parameter, a method or a call "
                f"option of Agent, or {', '.join(f'{kind}.<prefix>' for kind in _OF_PREFIXES)}"
            )
        elif wanted == "open_store":
            if not callable(getattr(cls, wanted, None)):
                yield (
                    f"plugin {name!r} owns {parameter!r} and has no method open_store: "
                    "write `def open_store(self, spec)`, without @hookimpl, which returns a LogStore"
                )
        elif wanted and wanted not in implemented:
            yield f"plugin {name!r} owns {parameter!r} and has no hook {wanted}, which is asked for it: implement it"


def _wanted(parameter: str) -> str | None:
    """What is called for a parameter; empty when it depends, None when nothing ever is."""
    kind, dot, prefix = parameter.partition(".")
    if dot:
        return _OF_PREFIXES.get(kind) if prefix else None

    if parameter in inspect.signature(Agent).parameters:
        return "adopt"

    if parameter in OWNED:
        return ""

    return "provide_method" if callable(getattr(Agent, parameter, None)) and not parameter.startswith("_") else None
