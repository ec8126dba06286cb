from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Agent
from ropewalk.errors import ToolDefinitionError
from ropewalk_testing import ScriptedModel, use
from ropewalk_tools import ModuleTool, ToolsPlugin

SPEC = """
TOOL_SPEC = {
    "name": "weather",
    "description": "Tells the weather",
    "inputSchema": {"json": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
"""
BODY = """
def weather(tool, **kwargs):
    city = tool["input"]["city"]
    tool["input"]["city"] = "overwritten"
    return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": f"sun in {city}"}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def provide(spec: Any) -> Any:
    found = ToolsPlugin().provide_tool(spec, None)
    return found[0] if isinstance(found, list) else found


async def test_a_module_with_a_spec_and_a_function_of_its_name_is_a_tool(folder, said):
    (folder / "weather.py").write_text(SPEC + BODY)

    tool = provide("./weather.py")

    assert isinstance(tool, ModuleTool)
    assert (tool.tool_name, tool.tool_type, tool.effect) == ("weather", "module", "irreversible")
    assert tool.tool_spec["description"] == "Tells the weather"
    assert await said(tool, city="Rome") == "sun in Rome"


@pytest.mark.parametrize(
    "spec", ["weather", "weather:weather", "./weather.py:weather", {"name": "weather", "path": "weather.py"}]
)
def test_every_way_to_name_it_finds_it(folder, spec):
    (folder / "weather.py").write_text(SPEC + BODY)

    assert provide(spec).tool_name == "weather"


def test_a_module_object_is_the_tool(folder):
    (folder / "weather.py").write_text(SPEC + BODY)
    import weather

    assert provide(weather).tool_name == "weather"
    with pytest.raises(ToolDefinitionError, match="has no 'wind'"):
        provide("weather:wind")


def test_a_name_that_is_not_in_the_file_is_an_error(folder):
    (folder / "weather.py").write_text(SPEC + BODY)

    with pytest.raises(ValueError, match="has no tool 'wind': it has 'weather'"):
        provide({"name": "wind", "path": "weather.py"})


async def test_the_function_may_bear_the_name_of_the_spec_instead(folder, said):
    (folder / "x.py").write_text(SPEC + BODY)

    assert await said(provide("x.py"), city="Rome") == "sun in Rome"


async def test_a_schema_may_stand_without_json_around_it(folder):
    (folder / "x.py").write_text(
        'TOOL_SPEC = {"name": "x", "inputSchema": {"type": "object"}}\ndef x(tool): return "x"\n'
    )

    assert provide("x.py").tool_spec == {"name": "x", "description": "x", "inputSchema": {"json": {"type": "object"}}}


async def test_an_async_function_and_a_generator_will_do(folder, said, run):
    (folder / "weather.py").write_text(SPEC + "async def weather(tool):\n    return 'async'\n")
    assert await said(provide("weather.py"), city="x") == "async"

    (folder / "weather.py").write_text(SPEC + "def weather(tool):\n    yield 'part'\n    yield 'whole'\n")
    assert await said(provide("weather.py"), city="x") == "whole"
    assert run.streamed == ["part", "whole"]


async def test_what_it_raises_and_returns_is_treated_as_with_a_decorated_function(folder, failed, said):
    (folder / "weather.py").write_text(SPEC + "def weather(tool): raise ValueError('no such city')\n")
    assert await failed(provide("weather.py"), city="x") == "Error: no such city"

    (folder / "weather.py").write_text(
        SPEC + "def weather(tool): return {'status': 'success', 'content': [{'x': 1}]}\n"
    )
    assert "no content block" in await failed(provide("weather.py"), city="x")

    (folder / "weather.py").write_text(SPEC + "def weather(tool): return {'degrees': 20}\n")
    assert await said(provide("weather.py"), city="x") == '{"degrees": 20}'


async def test_it_gets_the_invocation_state_as_keywords(folder, said):
    (folder / "weather.py").write_text(
        SPEC + "def weather(tool, **kwargs): return ' '.join(sorted(kwargs)) + ' ' + kwargs['tenant']\n"
    )
    assert await said(provide("weather.py"), city="x") == "agent invocation_state tenant tool_context acme"


async def test_it_gets_no_more_than_it_takes(folder, said, run):
    run.invocation_state["tool"] = "would clash with the first parameter"
    run.invocation_state[3] = "no keyword"
    (folder / "weather.py").write_text(SPEC + "def weather(tool, tenant, unit='C'): return tenant + unit\n")
    assert await said(provide("weather.py"), city="x") == "acmeC"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (SPEC, "has a TOOL_SPEC and no function 'x' or 'weather'"),
        ("TOOL_SPEC = 3\n", "has a TOOL_SPEC that is none"),
        ("TOOL_SPEC = {'name': 'x'}\n", "has a TOOL_SPEC that is none"),
        ("TOOL_SPEC = {'name': 3, 'inputSchema': {'type': 'object'}}\n", "has a TOOL_SPEC that is none"),
        ("TOOL_SPEC = {'name': 'x', 'inputSchema': {'type': 'array'}}\n", "has a TOOL_SPEC that is none"),
        (SPEC + "def x(): ...\n", "'x' takes no tool use"),
        (SPEC + "def x(*, tool): ...\n", "'x' takes no tool use"),
    ],
)
def test_a_wrong_module_is_an_error_that_names_it(folder, source, problem):
    (folder / "x.py").write_text(source)

    with pytest.raises(ToolDefinitionError, match=f"tool file 'x.py'.*{problem}"):
        provide("x.py")


def test_a_decorated_function_of_the_modules_name_needs_no_spec(folder):
    (folder / "x.py").write_text(
        SPEC + "from ropewalk_tools import tool\n\n@tool\ndef x() -> str:\n    return 'decorated'\n"
    )

    assert [tool.tool_name for tool in ToolsPlugin().provide_tool("x.py", None)] == ["x"]


def test_an_agent_uses_it(folder):
    (folder / "weather.py").write_text(SPEC + BODY)
    agent = Agent(
        model=ScriptedModel([use("weather", {"city": "Rome"}), "done"]), tools=["weather"], callback_handler=None
    )

    agent("go")

    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"city": "Rome"}
    assert agent.messages[2]["content"][0]["toolResult"]["content"] == [{"text": "sun in Rome"}]


def test_a_schema_of_a_module_is_made_json(folder):
    schema = '{"type": "object", "required": ("a",), "properties": {"a": {"maximum": 1e999, "enum": (1, 2)}}}'
    (folder / "x.py").write_text(f'TOOL_SPEC = {{"name": "x", "inputSchema": {schema}}}\ndef x(tool): return "x"\n')

    assert provide("x.py").tool_spec["inputSchema"]["json"] == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"enum": [1, 2]}},
    }
