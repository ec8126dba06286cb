"""Reads a function's signature: what the model must fill in, and where the tool context goes."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final

from ropewalk.errors import ToolDefinitionError
from ropewalk_tools.context import ToolContext
from ropewalk_tools.scope import Scope

_CONTEXT_BY_TEXT: Final = re.compile(r"[\"']?(?:\w+\.)*ToolContext(?:\s*\|\s*None)?[\"']?")
_STARS: Final[dict[Any, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
DEFAULT_CONTEXT_NAME: Final = "tool_context"


class Parameters:
    """The parameters of one tool's function, with their types as far as they are known.

    Types are looked up at once, so that mistakes show where they are made. Names that are not defined yet are looked
    up again by `complete`.

    Attributes:
        all: The parameters by name, in order, without the `self` of a method.
        types: The resolved type of each parameter; the context parameter needs none.
        context: Name of the parameter that gets the tool context, or None.
    """

    __slots__ = ("_flag", "_scope", "_tool", "all", "context", "types")

    def __init__(self, tool_name: str, function: Callable[..., Any], *, bound: bool, context: bool | str) -> None:
        self._tool = tool_name
        self._flag = context
        self._scope: Scope | None = Scope(_innermost(function))
        self.all = self._read(function, bound=bound)
        self.types: dict[str, Any] = {}
        self.context: str | None = None
        self._resolve()
        self._find_context()
        if not self._unresolved():
            self._scope = None

    def complete(self) -> None:
        """Looks up what was not defined before.

        Raises:
            ToolDefinitionError: A name is still not defined, or the context parameter is wrong.
        """
        if self._scope is None:
            return

        self._resolve()
        self._find_context()
        for name in self._unresolved():
            raise ToolDefinitionError(
                f"{self._where(name)}: its annotation {self.all[name].annotation!r} cannot be read, a name in it is not"
                " defined: import it outside `if TYPE_CHECKING`, or define it before the tool is first used"
            )

        self._scope = None

    def _read(self, function: Callable[..., Any], *, bound: bool) -> dict[str, inspect.Parameter]:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise ToolDefinitionError(
                f"tool {self._tool!r}: the signature cannot be read ({error}): wrap it in a function of your own"
            ) from error

        parameters = list(signature.parameters.values())[1 if bound else 0 :]
        for parameter in parameters:
            if stars := _STARS.get(parameter.kind):
                raise ToolDefinitionError(
                    f"{self._where(stars + parameter.name)}: a model cannot fill in an open list of arguments: give"
                    " each one a name and a type (a decorator below @tool needs functools.wraps to show them)"
                )

        # what a partial has filled in is not the model's to see or change
        given = function.keywords if isinstance(function, functools.partial) else {}
        return {parameter.name: parameter for parameter in parameters if parameter.name not in given}

    def _resolve(self) -> None:
        assert self._scope is not None  # noqa: S101 - for mypy: both callers have just looked
        for name, parameter in self.all.items():
            if name in self.types:
                continue

            if parameter.annotation is inspect.Parameter.empty:
                self.types[name] = Any
                continue

            try:
                self.types[name] = self._scope.resolve(parameter.annotation)
            except (NameError, AttributeError):
                continue  # perhaps defined further down
            except Exception as error:
                raise ToolDefinitionError(
                    f"{self._where(name)}: its annotation {parameter.annotation!r} is no type: {error}"
                ) from error

    def _unresolved(self) -> list[str]:
        return [name for name in self.all if name not in self.types and name != self.context]

    def _find_context(self) -> None:
        marked = [name for name in self.all if self._is_context(name)]
        self.context = self._wanted(marked)
        for name in marked:
            if name != self.context:
                raise ToolDefinitionError(
                    f"{self._where(name)}: it is a ToolContext, which the model cannot give: decorate the tool with"
                    f" @tool(context={'True' if self._flag is False else repr(name)}), and take one context only"
                )

    def _wanted(self, marked: list[str]) -> str | None:
        if self._flag is False:
            return None

        name = self._flag if isinstance(self._flag, str) else next(iter(marked), DEFAULT_CONTEXT_NAME)
        if name in self.all:
            return name

        if self._flag is True and len(self.types) < len(self.all):
            return None  # one that cannot be read yet may be it

        raise ToolDefinitionError(
            f"tool {self._tool!r} asks for its context, and has no parameter {name!r}: add"
            f" `{name}: ToolContext` to the function"
        )

    def _is_context(self, name: str) -> bool:
        if name in self.types:
            return _is_context_type(self.types[name])

        annotation = self.all[name].annotation
        return isinstance(annotation, str) and _CONTEXT_BY_TEXT.fullmatch(annotation) is not None

    def _where(self, parameter: str) -> str:
        return f"tool {self._tool!r}, parameter {parameter!r}"


def _is_context_type(annotation: Any) -> bool:
    if typing.get_origin(annotation) is Annotated:
        return _is_context_type(annotation.__origin__)

    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return any(_is_context_type(member) for member in typing.get_args(annotation))

    return isinstance(annotation, type) and issubclass(annotation, ToolContext)


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose text holds the annotations: below decorators, partials and bound methods."""
    while True:
        inner: Callable[..., Any] = inspect.unwrap(function)
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif inspect.ismethod(inner):
            inner = inner.__func__

        if inner is function:
            return function

        function = inner
