from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pydantic
import pytest

import ropewalk_tools
from ropewalk.errors import ToolDefinitionError
from ropewalk_tools import ToolContext, tool
from ropewalk_tools import ToolContext as Ctx

if TYPE_CHECKING:
    from ropewalk_tools import ToolContext as HiddenContext

    class Hidden(pydantic.BaseModel):
        n: int


def schema_of(made: Any) -> dict[str, Any]:
    return made.tool_spec["inputSchema"]["json"]


SOURCE = """
import enum
from typing import Annotated, Literal, Optional, Union

import pydantic

import ropewalk_tools
from ropewalk_tools import ToolContext as Ctx, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    bark: str


@tool(context=True)
def everything(
    ctx: Ctx,
    pet: Cat | Dog,
    pets: list[Union[Cat, Dog]],
    level: Literal["low", "high"],
    n: Annotated[int, "a number", pydantic.Field(ge=1, le=9)],
    later: "list[Later]",
    color: Color = Color.RED,
    count: int | None = None,
    word: Optional[str] = None,
) -> "Nowhere":
    return f"{type(ctx).__name__} {type(pet).__name__} {color.name}"


class Later(pydantic.BaseModel):
    x: int
"""


@pytest.fixture
def spec_of_source(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs a module's text and answers with the spec of its tool."""

    def spec_of_source(source: str) -> dict[str, Any]:
        module = types.ModuleType("made_up")
        monkeypatch.setitem(sys.modules, "made_up", module)
        exec(compile(source, "made_up.py", "exec", dont_inherit=True), vars(module))
        return module.everything.tool_spec

    return spec_of_source


def test_postponed_annotations_make_the_same_schema(spec_of_source):
    postponed = spec_of_source("from __future__ import annotations\n" + SOURCE)

    assert postponed == spec_of_source(SOURCE)
    schema = postponed["inputSchema"]["json"]
    assert list(schema["properties"]) == ["pet", "pets", "level", "n", "later", "color", "count", "word"]
    assert schema["required"] == ["pet", "pets", "level", "n", "later"]
    assert schema["properties"]["n"] == {"type": "integer", "minimum": 1, "maximum": 9, "description": "a number"}
    assert schema["properties"]["count"] == {"type": "integer", "description": "Parameter count"}
    assert schema["properties"]["color"]["default"] == "red"


# -- where names come from ---------------------------------------------------------------------------------------


@tool
def uses_a_class_below(x: Below) -> str:
    return f"{type(x).__name__} {x.n}"


class Below(pydantic.BaseModel):
    n: int


async def test_a_class_defined_below_the_function_is_found_at_first_use(said):
    assert await said(uses_a_class_below, x={"n": 3}) == "Below 3"


async def test_a_closure_local_class_is_found(said):
    class Local(pydantic.BaseModel):
        n: int

    @tool
    def uses_a_local_class(x: Local, more: list[Local] | None = None) -> str:
        return f"{type(x).__name__} {x.n}"

    assert await said(uses_a_local_class, x={"n": 3}) == "Local 3"


async def test_a_closure_local_class_is_found_from_a_method_of_a_local_class(said):
    class Local(pydantic.BaseModel):
        n: int

    class Holder:
        class Inner(pydantic.BaseModel):
            m: int

        @tool
        def both(self, x: Local, y: Inner) -> int:
            return x.n + y.m

    assert await said(Holder().both, x={"n": 3}, y={"m": 4}) == "7"


def make_with_a_class_below() -> Any:
    @tool
    def uses_a_later_local(x: LaterLocal) -> str:
        return type(x).__name__

    class LaterLocal(pydantic.BaseModel):
        n: int

    return uses_a_later_local


async def test_a_closure_local_class_defined_below_is_found_after_its_function_has_ended(said):
    assert await said(make_with_a_class_below(), x={"n": 3}) == "LaterLocal"


def test_the_locals_of_the_making_function_are_let_go_once_the_types_are_known():
    class Big:
        pass

    def make() -> tuple[Any, Any]:
        big = Big()

        @tool
        def early(n: int) -> int:
            return n

        return early, weakref.ref(big)

    made, big = make()
    assert big() is None
    assert schema_of(made)["required"] == ["n"]


def test_the_locals_of_the_making_function_are_let_go_at_first_use_when_a_type_came_later():
    class Big:
        pass

    def make() -> tuple[Any, Any]:
        big = Big()

        @tool
        def late(n: LaterLocal) -> int:
            return n.n

        class LaterLocal(pydantic.BaseModel):
            n: int

        return late, weakref.ref(big)

    made, big = make()
    assert schema_of(made)["required"] == ["n"]
    gc.collect()
    assert big() is None


def make_undecorated() -> Any:
    class Kept(pydantic.BaseModel):
        n: int

    def uses_what_it_encloses(x: Kept) -> str:
        return str(isinstance(x, Kept))

    return uses_what_it_encloses


async def test_a_closure_local_class_that_the_body_uses_is_found_when_decorated_elsewhere(said):
    assert await said(tool(make_undecorated()), x={"n": 3}) == "True"


@pytest.mark.parametrize("attempt", [1, 2])
async def test_a_name_for_the_type_checker_only_is_an_error_at_first_use(attempt, invoke):
    @tool
    def hidden(good: int, bad: Hidden) -> None: ...

    for _ in range(attempt):
        with pytest.raises(ToolDefinitionError, match=r"tool 'hidden', parameter 'bad'.*'Hidden'.*TYPE_CHECKING"):
            _ = hidden.tool_spec

    with pytest.raises(ToolDefinitionError, match="parameter 'bad'"):
        await invoke(hidden, good=1, bad={})


@pytest.mark.parametrize("annotation", ["3 | 'four'", "int]", "not a type"])
def test_an_annotation_that_can_never_be_a_type_is_an_error_at_once(annotation):
    def broken(x): ...

    broken.__annotations__["x"] = annotation
    with pytest.raises(ToolDefinitionError, match=r"tool 'broken', parameter 'x'.*is no type"):
        tool(broken)


def test_a_type_that_json_cannot_carry_is_an_error_that_names_the_parameter():
    class Opaque:
        pass

    @tool
    def opaque(good: int, bad: Opaque) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"tool 'opaque', parameter 'bad'.*pydantic model"):
        _ = opaque.tool_spec


async def test_a_wrapped_function_keeps_its_signature(said):
    def shout(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> str:
            return function(*args, **kwargs).upper()

        return wrapper

    @tool
    @shout
    def hello(name: Annotated[str, "whom"], below: Below | None = None) -> str:
        """Greets."""
        return f"hello {name} {below.n if below else ''}"

    assert schema_of(hello)["properties"]["name"] == {"type": "string", "description": "whom"}
    assert hello.tool_spec["description"] == "Greets."
    assert await said(hello, name="ann", below={"n": 3}) == "HELLO ANN 3"


def test_open_argument_lists_are_refused_at_once():
    with pytest.raises(ToolDefinitionError, match=r"tool 'many', parameter '\*args'.*functools\.wraps"):

        @tool
        def many(a: int, *args: int) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"tool 'named', parameter '\*\*kwargs'"):

        @tool
        def named(**kwargs: int) -> None: ...


async def test_a_parameter_without_a_type_takes_anything(said):
    @tool
    def anything(x, y=1):
        return f"{x} {y}"

    assert schema_of(anything)["required"] == ["x"]
    assert await said(anything, x=[1]) == "[1] 1"


# -- the context -------------------------------------------------------------------------------------------------


@tool(context=True)
def plain_context(tool_context: ToolContext, n: int) -> str:
    return f"{tool_context.tool_use['toolUseId']} {n}"


@tool(context=True)
def aliased(n: int, c: Ctx) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def dotted(n: int, c: ropewalk_tools.ToolContext) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def optional(n: int, c: Optional[Ctx] = None) -> str:  # noqa: UP045 - the older spelling
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def annotated(n: int, c: Annotated[Ctx | None, "x"] = None) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def untyped(n: int, tool_context) -> str:
    return f"{tool_context.tool_use['toolUseId']} {n}"


@tool(context="c")
def named(n: int, c) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context="c")
def hidden_from_run_time(n: int, c: HiddenContext) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def quoted(n: int, c: "ToolContext") -> str:  # noqa: UP037 - quotes within what is postponed anyway
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def positional(c: Ctx, /, n: int) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


@tool(context=True)
def with_a_class_below(n: int, c: Ctx, below: BelowToo | None = None) -> str:
    return f"{c.tool_use['toolUseId']} {n}"


class BelowToo(pydantic.BaseModel):
    n: int


@pytest.mark.parametrize(
    "made",
    [
        plain_context,
        aliased,
        dotted,
        optional,
        annotated,
        untyped,
        named,
        hidden_from_run_time,
        quoted,
        positional,
        with_a_class_below,
    ],
    ids=lambda made: made.tool_name,
)
async def test_the_context_is_handed_over_and_never_in_the_schema(made, said):
    assert set(schema_of(made)["properties"]) <= {"n", "below"}
    assert schema_of(made)["required"] == ["n"]
    assert await said(made, n=3) == "T1 3"


async def test_a_context_named_for_the_type_checker_only_is_known_by_its_name(said):
    names: dict[str, Any] = {"tool": tool}
    source = "@tool(context=True)\ndef asks(c: 'x.ToolContext | None', n: int) -> str:\n    return c.tool_use['name']\n"
    exec(source, names)

    assert await said(names["asks"], n=1) == "asks"


async def test_the_context_tells_about_the_call(run, said):
    @tool(context="ctx")
    def asks(ctx: ToolContext, n: int) -> str:
        assert ctx.agent is run.agent
        assert ctx.invocation_state is run.invocation_state
        assert ctx.cancel_signal is run.cancel_signal
        assert ctx.tool_use == {"toolUseId": "T1", "name": "asks", "input": {"n": 1}}
        ctx.emit({"half": True})
        return ctx.idempotency_key

    assert await said(asks, n=1) == "run_1:T1"
    assert run.streamed == [{"half": True}]


async def test_the_model_cannot_send_a_context(said):
    assert await said(plain_context, n=3, tool_context="mine") == "T1 3"


def test_a_context_parameter_without_the_flag_is_refused_at_once():
    with pytest.raises(ToolDefinitionError, match=r"tool 'forgot', parameter 'c'.*@tool\(context=True\)"):

        @tool
        def forgot(c: Ctx) -> None: ...


def test_a_context_that_only_its_text_shows_is_refused_without_the_flag():
    def forgot(c): ...

    forgot.__annotations__["c"] = "nowhere.ToolContext"
    with pytest.raises(ToolDefinitionError, match="parameter 'c'"):
        tool(forgot)


def test_a_second_context_is_refused():
    with pytest.raises(ToolDefinitionError, match=r"parameter 'd'.*one context only"):

        @tool(context=True)
        def two(c: Ctx, d: Ctx) -> None: ...

    with pytest.raises(ToolDefinitionError, match="parameter 'c'"):

        @tool(context="d")
        def other(c: Ctx, d: Any) -> None: ...


@pytest.mark.parametrize(("flag", "name"), [(True, "tool_context"), ("ctx", "ctx")])
def test_a_flag_without_a_parameter_is_refused_at_once(flag, name):
    with pytest.raises(ToolDefinitionError, match=f"tool 'lacks'.*no parameter '{name}'.*add `{name}: ToolContext`"):

        @tool(context=flag)
        def lacks(n: int) -> None: ...


@pytest.mark.parametrize("flag", [1, None, ["c"]])
def test_a_flag_of_another_type_is_refused(flag):
    with pytest.raises(ToolDefinitionError, match="tool 'odd': context="):
        tool(context=flag, name="odd")(lambda c: c)


async def test_a_parameter_named_agent_is_the_models_to_fill_in(said):
    @tool
    def assign(agent: str, self_: Literal["a"] = "a") -> str:
        return f"agent is {agent}"

    assert schema_of(assign)["properties"]["agent"] == {"type": "string", "description": "Parameter agent"}
    assert await said(assign, agent="Smith") == "agent is Smith"
