"""Finds what the names in a function's annotations stand for, also when the function was made inside another one."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from typing import Any


class Scope:
    """The names that a function can see: its module's, and those of the functions and classes around it.

    Locals of enclosing functions are read through their frames, which must be on the stack when the scope is made.
    A scope that outlives its use keeps all these locals alive: drop it.
    """

    __slots__ = ("_frames", "_function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._frames = _lexical_frames(function)

    def resolve(self, annotation: Any) -> Any:
        """The type that an annotation stands for, `Annotated` extras included.

        Raises:
            Exception: Whatever reading the annotation raises; NameError when a name in it is not defined (yet).
        """
        holder = types.SimpleNamespace(__annotations__={"value": annotation})
        names = getattr(self._function, "__globals__", {})
        return typing.get_type_hints(holder, names, self._locals(), include_extras=True)["value"]

    def _locals(self) -> dict[str, Any]:
        names: dict[str, Any] = {}
        for frame in reversed(self._frames):
            names.update(frame.f_locals)

        free = getattr(getattr(self._function, "__code__", None), "co_freevars", ())
        for name, cell in zip(free, getattr(self._function, "__closure__", None) or (), strict=False):
            try:
                names[name] = cell.cell_contents
            except ValueError:
                continue  # assigned further down

        names.update({variable.__name__: variable for variable in getattr(self._function, "__type_params__", ())})
        return names


def _lexical_frames(function: Callable[..., Any]) -> list[types.FrameType]:
    """The running frames in whose source text the function stands, innermost first, without the module's."""
    frames: list[types.FrameType] = []
    code = getattr(function, "__code__", None)
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's names
    while frame is not None and code is not None:
        if any(constant is code for constant in frame.f_code.co_consts):
            if frame.f_locals is frame.f_globals:
                break

            frames.append(frame)
            code = frame.f_code

        frame = frame.f_back

    return frames
