"""The tool name under which a model is offered an output model."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

LONGEST: Final = 64
FALLBACK: Final = "structured_output"

_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]+")


def tool_name_of(model: Any) -> str:
    """The name of a class or alias, made legal: `Box[int]` is `Box_int`, `Cat | Dog` is `Cat_or_Dog`."""
    legal = _ILLEGAL.sub("_", _label(model)).strip("_")
    return legal[:LONGEST] or FALLBACK


def _label(model: Any) -> str:
    origin, arguments = get_origin(model), get_args(model)
    if origin is Annotated:
        return _label(arguments[0])

    if origin in (Union, UnionType):
        return "_or_".join(map(_label, arguments))

    if arguments:
        return "_".join([_label(origin), *map(_label, arguments)])

    return "None" if model is NoneType else str(getattr(model, "__name__", model))
