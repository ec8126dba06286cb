"""Entries of `tools=` that are one name: a file in ./tools, or a module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk_tools import ToolsPlugin

SOURCE = "from ropewalk_tools import tool\n\n@tool\ndef {name}() -> str:\n    return {text!r}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an empty folder `tools`, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tools").mkdir()
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def provide(spec):
    return ToolsPlugin().provide_tool(spec, None)


def test_a_name_is_a_file_in_the_tools_folder(folder):
    (folder / "tools" / "shout.py").write_text(SOURCE.format(name="shout", text="from the file"))
    (folder / "shout.py").write_text(SOURCE.format(name="other", text="from the module"))

    assert [tool.tool_name for tool in provide("shout")] == ["shout"]


def test_a_name_is_a_module_when_there_is_no_such_file(folder):
    package = folder / "pack_of_tools"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(SOURCE.format(name="deep", text="deep"))
    (folder / "lone_tools.py").write_text(SOURCE.format(name="lone", text="lone"))

    assert [tool.tool_name for tool in provide("pack_of_tools.inner")] == ["deep"]
    assert [tool.tool_name for tool in provide("lone_tools")] == ["lone"]


@pytest.mark.parametrize("name", ["no_such_thing_1", "x.txt", "json.nowhere"])
def test_a_name_that_is_nothing_is_an_error_that_says_where_it_was_looked_for(folder, name):
    with pytest.raises(ToolDefinitionError, match=rf"there is no tools/{name}.py here.*importing '{name}' raised"):
        provide(name)


def test_a_module_without_a_tool_is_an_error(folder):
    with pytest.raises(ToolDefinitionError, match=r"tools='json'.*has no tool in it"):
        provide("json")
