"""A function that is a tool: what is known of it, and how it answers a call."""

from __future__ import annotations

import functools
import inspect
import logging
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, final, overload

import pydantic

from ropewalk.errors import ToolDefinitionError
from ropewalk.tools import ToolCall, error_result
from ropewalk.types import Effect, OnUnknown, ToolResult, ToolSpec
from ropewalk_tools.bodies import kind_of, run_body
from ropewalk_tools.context import ToolContext
from ropewalk_tools.docstrings import split_docstring
from ropewalk_tools.inputs import InputModel, problems_of, strict_schema
from ropewalk_tools.parameters import Parameters
from ropewalk_tools.results import result_of, result_of_error

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

_log = logging.getLogger("ropewalk.tools")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFECTS: Final = typing.get_args(Effect)
_ON_UNKNOWN: Final = typing.get_args(OnUnknown)


class _Definition:
    """What is said about a tool, and what follows from it; shared by a method's tools of all instances."""

    __slots__ = ("_inputs", "_spec", "context", "description", "name", "parameters", "positional", "schema")

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        description: str | None,
        schema: dict[str, Any] | None,
        context: bool | str,
        method: bool,
    ) -> None:
        self.name = _checked_name(getattr(function, "__name__", "") if name is None else name)
        self.description = description
        self.schema = _checked_schema(self.name, schema)
        if not isinstance(context, bool | str):
            raise ToolDefinitionError(
                f"tool {self.name!r}: context={context!r}: give True, or the name of the parameter that gets it"
            )

        self.parameters = Parameters(self.name, function, bound=method, context=context)
        self.positional = [
            name for name, parameter in self.parameters.all.items() if parameter.kind is parameter.POSITIONAL_ONLY
        ]
        self._inputs: InputModel | None = None
        self._spec: ToolSpec | None = None

    def inputs(self, function: Callable[..., Any]) -> InputModel:
        """The check of the input, made at first use: types may be defined below the function, and it takes time."""
        if self._inputs is None:
            self.parameters.complete()
            self._inputs = InputModel(self.name, self.parameters, split_docstring(_docstring(function))[1])

        return self._inputs

    def spec(self, function: Callable[..., Any]) -> ToolSpec:
        if self._spec is None:
            schema = self.inputs(function).schema
            description = self.description or split_docstring(_docstring(function))[0] or self.name
            self._spec = {
                "name": self.name,
                "description": description,
                "inputSchema": {"json": self.schema or schema},
            }

        return self._spec


@final
class FunctionTool(Generic[P, R]):
    """A function that a model can ask for. Calling it calls the function.

    Attributes:
        tool_name: The name the model uses.
        tool_type: `"function"`.
        effect: What running it twice does.
        on_unknown: What to do with a call that was started and never seen to end; None leaves it to `effect`.
    """

    tool_type: Final = "function"
    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        schema: dict[str, Any] | None = None,
        context: bool | str = False,
        effect: Effect = "irreversible",
        on_unknown: OnUnknown | None = None,
    ) -> None:
        if isinstance(function, FunctionTool):
            function = function.__wrapped__  # another tool of the same function

        self._binds_class = isinstance(function, classmethod)
        self._is_static = isinstance(function, staticmethod)
        if isinstance(function, classmethod | staticmethod):
            function = function.__func__

        if isinstance(function, type) or not callable(function):
            raise ToolDefinitionError(f"@tool decorates functions, not {function!r}: write a function for it")

        functools.update_wrapper(self, function)
        self._function = function
        self._is_method = self._binds_class or (not self._is_static and _takes_self(function))
        self._define = functools.partial(
            _Definition, function, name=name, description=description, schema=schema, context=context
        )
        self._definition = self._define(method=self._is_method)
        self._kind = kind_of(function)
        self._self: tuple[Any, ...] = ()
        self.tool_name: str = self._definition.name
        self.effect: Effect = _one_of(effect, _EFFECTS, f"tool {self.tool_name!r}: effect")
        self.on_unknown: OnUnknown | None = on_unknown
        if on_unknown is not None:
            _one_of(on_unknown, _ON_UNKNOWN, f"tool {self.tool_name!r}: on_unknown")

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is told.

        Raises:
            ToolDefinitionError: A parameter's type cannot be found, or not be told to a model.
        """
        self._need_self()
        return self._definition.spec(self._function)

    def __set_name__(self, owner: type, name: str) -> None:
        # a method whose object is not called self; a tool that is merely assigned in a class has another home
        if not self._is_method and not self._is_static and self.__qualname__ == f"{owner.__qualname__}.{name}":
            self._is_method = True
            self._definition = self._define(method=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself: no check, no context, no result block."""
        return self._function(*self._self, *args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> FunctionTool[P, R]: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> FunctionTool[Q, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> FunctionTool[Any, R]:
        if not self._is_method or self._self:
            return self

        if self._binds_class:
            return self._bound_to(owner)

        return self if instance is None else self._bound_to(instance)

    def __repr__(self) -> str:
        return f"<tool {self.tool_name!r}: {self._function!r}>"

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Checks the input, runs the function once and answers with its result.

        An exception becomes an error result; what is no `Exception` (a cancellation, SystemExit) goes to the caller.
        """
        self._need_self()
        definition, tool_use_id = self._definition, call.tool_use["toolUseId"]
        inputs = definition.inputs(self._function)
        try:
            kwargs = inputs.read(call.tool_use["input"])
        except pydantic.ValidationError as error:
            return error_result(
                tool_use_id, f"Error: the input does not fit the tool {self.tool_name!r}:\n{problems_of(error)}"
            )
        except Exception as error:  # noqa: BLE001 - a validator of the user's own
            return result_of_error(error, tool_use_id)

        if definition.parameters.context:
            kwargs[definition.parameters.context] = ToolContext(call)

        args = [*self._self, *[kwargs.pop(name) for name in definition.positional]]
        try:
            value = await run_body(self._kind, self._function, args, kwargs, call)
            return result_of(value, tool_use_id)
        except Exception as error:  # noqa: BLE001 - the model is told, and may try something else
            _log.debug("tool %s raised", self.tool_name, exc_info=True)
            call.error = error
            return result_of_error(error, tool_use_id)

    def _bound_to(self, first: Any) -> FunctionTool[Any, R]:
        bound: FunctionTool[Any, R] = object.__new__(FunctionTool)
        bound.__dict__.update(self.__dict__)
        bound._self = (first,)
        bound.__wrapped__ = types.MethodType(self._function, first)
        return bound

    def _need_self(self) -> None:
        if self._is_method and not self._self:
            raise ToolDefinitionError(
                f"tool {self.tool_name!r} is a method without its object: take it from an instance, such as"
                f" Class().{self.tool_name} (with @classmethod, write @tool above it)"
            )


def _checked_name(name: Any) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name

    raise ToolDefinitionError(
        f"tool {name!r}: a tool's name is 1 to 64 of a-z A-Z 0-9 _ -: give it one with @tool(name=...)"
    )


def _checked_schema(name: str, schema: Any) -> dict[str, Any] | None:
    if schema is None:
        return None

    inner = schema["json"] if isinstance(schema, dict) and set(schema) == {"json"} else schema
    if (
        not isinstance(inner, dict)
        or inner.get("type") != "object"
        or not isinstance(inner.get("properties", {}), dict)
    ):
        raise ToolDefinitionError(
            f'tool {name!r}: inputSchema is no JSON schema of an object: give {{"type": "object", "properties": ...}}'
        )

    return strict_schema(inner)


def _one_of(value: Any, choices: tuple[str, ...], what: str) -> Any:
    if value not in choices:
        raise ToolDefinitionError(f"{what} is {value!r}: give one of {', '.join(choices)}")

    return value


def _takes_self(function: Callable[..., Any]) -> bool:
    """Whether the function is a method by its first parameter's name. A bound method has its object already."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return bool(code and code.co_argcount and code.co_varnames[0] in {"self", "cls"}) and not inspect.ismethod(function)


def _docstring(function: Callable[..., Any]) -> str | None:
    # a partial's own __doc__ is that of functools.partial
    return None if isinstance(function, functools.partial) else getattr(function, "__doc__", None)
