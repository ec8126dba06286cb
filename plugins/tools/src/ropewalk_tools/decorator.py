"""`@tool`: makes a tool of a function and leaves it callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from ropewalk.types import Effect, OnUnknown
from ropewalk_tools.function_tool import FunctionTool

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    inputSchema: dict[str, Any] | None = None,  # noqa: N803 - the name users know
    context: bool | str = False,
    effect: Effect = "irreversible",
    on_unknown: OnUnknown | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    inputSchema: dict[str, Any] | None = None,  # noqa: N803 - the name users know
    context: bool | str = False,
    effect: Effect = "irreversible",
    on_unknown: OnUnknown | None = None,
) -> Any:
    """Makes a tool of a function, an async function, a generator or a method.

    Types and docstring tell the model what to send; `Annotated[int, "text", Field(ge=1)]` says more. A generator's
    items are shown to whoever follows the run, and its last item is the result.

    Args:
        function: The function, when the decorator stands without parentheses.
        name: The name for the model; the function's own by default.
        description: What the tool is for; the docstring without its section on parameters by default.
        inputSchema: A JSON schema (or `{"json": schema}`) shown in place of the one made from the signature. The
            input is checked against the signature all the same.
        context: True hands the function a `ToolContext` in the parameter of that type (or named `tool_context`); a
            string names the parameter.
        effect: What running it twice does: `"pure"` nothing, `"idempotent"` the same again, `"irreversible"` harm.
        on_unknown: What to do after a crash with a call that was started and never seen to end.

    Returns:
        The tool, or the decorator that makes it.

    Raises:
        ToolDefinitionError: The function cannot be a tool. Types that are not defined yet are looked up at first use.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool[Any, Any]:
        return FunctionTool(
            function,
            name=name,
            description=description,
            schema=inputSchema,
            context=context,
            effect=effect,
            on_unknown=on_unknown,
        )

    return decorate if function is None else decorate(function)
