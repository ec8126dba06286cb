"""A module that is a tool: `TOOL_SPEC` says what the model is told, a function of the module's name does the work."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, final

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import ToolCall
from ropewalk.types import Effect, OnUnknown, ToolResult, ToolSpec
from ropewalk_tools.bodies import kind_of, run_body
from ropewalk_tools.context import ToolContext
from ropewalk_tools.inputs import strict_schema
from ropewalk_tools.results import result_of, result_of_error

_ATTRIBUTE: Final = "TOOL_SPEC"


@final
class ModuleTool:
    """The tool of a module with a `TOOL_SPEC`.

    The function gets a copy of the tool use, and as keywords what it takes of the invocation state's keys, `agent`,
    `invocation_state` and `tool_context`. It answers as a function with `@tool` does. Its input is not checked.

    Attributes:
        tool_name: The name in `TOOL_SPEC`.
        tool_spec: What the model is told.
        tool_type: `"module"`.
        effect: The module's `EFFECT`, or `"irreversible"`.
        on_unknown: None: what becomes of a call that was never seen to end follows from the effect.
    """

    tool_type: Final = "module"
    on_unknown: OnUnknown | None = None

    def __init__(self, spec: ToolSpec, function: Callable[..., Any], module: ModuleType, where: str) -> None:
        self.tool_spec = spec
        self.tool_name = spec["name"]
        self.effect: Effect = getattr(module, "EFFECT", "irreversible")
        self.__name__ = function.__name__
        self.__module__ = module.__name__
        self._function = function
        self._kind = kind_of(function)
        self._first, self._takes = _signature(function, where)

    def __repr__(self) -> str:
        return f"<tool {self.tool_name!r}: {self._function!r}>"

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Runs the function once. An exception becomes an error result."""
        use_id = call.tool_use["toolUseId"]
        try:
            value = await run_body(
                self._kind, self._function, [copy.deepcopy(call.tool_use)], self._keywords(call), call
            )
            return result_of(value, use_id)
        except Exception as error:  # noqa: BLE001 - the model is told, and may try something else
            return result_of_error(error, use_id)

    def _keywords(self, call: ToolCall) -> dict[str, Any]:
        state = call.invocation_state
        known = {key: value for key, value in state.items() if isinstance(key, str)}
        known |= {"agent": call.agent, "invocation_state": state, "tool_context": ToolContext(call)}
        known.pop(self._first, None)
        return known if self._takes is None else {key: known[key] for key in self._takes & known.keys()}


def module_tool(module: ModuleType, where: str) -> ModuleTool | None:
    """The tool of a module with a `TOOL_SPEC`; None when it has none, or when its function is a tool by itself.

    Raises:
        ToolDefinitionError: The spec has not the shape of one, or there is no function for it.
    """
    spec = getattr(module, _ATTRIBUTE, None)
    if spec is None:
        return None

    checked = _checked(spec, where)
    names = dict.fromkeys((_stem(module), checked["name"]))
    for name in names:
        function = getattr(module, name, None)
        if is_tool(function):
            return None

        if inspect.isroutine(function):
            return ModuleTool(checked, function, module, where)

    raise ToolDefinitionError(
        f"{where} has a {_ATTRIBUTE} and no function {' or '.join(map(repr, names))}: "
        f"define `def {next(iter(names))}(tool, **kwargs)` there"
    )


def _stem(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    stem = Path(file).stem if file else "__init__"
    return module.__name__.rpartition(".")[2] if stem == "__init__" else stem


def _checked(spec: Any, where: str) -> ToolSpec:
    """The spec as models are told it; the schema may stand in it with or without `{"json": ...}` around it."""
    given = spec if isinstance(spec, dict) else {}
    schema = given.get("inputSchema")
    inner = schema["json"] if isinstance(schema, dict) and set(schema) == {"json"} else schema
    if not isinstance(given.get("name"), str) or not isinstance(inner, dict) or inner.get("type") != "object":
        raise ToolDefinitionError(
            f"{where} has a {_ATTRIBUTE} that is none: "
            'use {"name": ..., "description": ..., "inputSchema": {"json": {"type": "object", ...}}}'
        )

    return {
        "name": given["name"],
        "description": str(given.get("description") or given["name"]),
        "inputSchema": {"json": strict_schema(inner)},
    }


def _signature(function: Callable[..., Any], where: str) -> tuple[str, frozenset[str] | None]:
    """Name of the first parameter, and those of the others; None for a function that takes any keyword."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    }:
        raise ToolDefinitionError(
            f"{where}: {function.__name__!r} takes no tool use: define `def {function.__name__}(tool, **kwargs)`"
        )

    first, *others = parameters
    if any(other.kind is inspect.Parameter.VAR_KEYWORD for other in others):
        return first.name, None

    return first.name, frozenset(other.name for other in others)
