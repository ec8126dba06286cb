from __future__ import annotations

import functools
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk_tools import ToolsPlugin, tool

TWO = """
from __future__ import annotations

import pydantic
from json import dumps
from ropewalk_tools import tool

class Item(pydantic.BaseModel):
    more: Item | None = None
    n: int = 1

@tool
def one(item: Item) -> int:
    return item.n

def helper():
    ...

@tool(name="second")
def two() -> str:
    return WORD

WORD = "two"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def provide(spec: Any) -> Any:
    return ToolsPlugin().provide_tool(spec, None)


def names_of(found: Any) -> list[str]:
    return [each.tool_name for each in (found if isinstance(found, list) else [found])]


# -- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["x.py", "./x.py", "{}/x.py", "sub/../x.py"])
async def test_a_path_gives_all_tools_of_the_file(form, folder, said):
    (folder / "x.py").write_text(TWO)
    (folder / "sub").mkdir()

    found = provide(form.format(folder))

    assert names_of(found) == ["one", "second"]
    assert await said(found[0], item={"n": 5}) == "5"
    assert await said(found[1]) == "two"


@pytest.mark.parametrize(
    "spec", ["./x.py:second", "x.py:two", {"name": "second", "path": "x.py"}, {"name": "two", "path": Path("x.py")}]
)
def test_a_path_and_a_name_give_one_tool(spec, folder):
    (folder / "x.py").write_text(TWO)

    assert names_of(provide(spec)) == ["second"]


def test_dicts_and_path_objects_name_files_too(folder):
    (folder / "x.py").write_text(TWO)

    assert names_of(provide({"path": "x.py"})) == ["one", "second"]
    assert names_of(provide(folder / "x.py")) == ["one", "second"]


def test_the_home_directory_is_known(folder, monkeypatch):
    (folder / "x.py").write_text(TWO)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))

    assert names_of(provide("~/x.py")) == ["one", "second"]


@pytest.mark.parametrize("spec", [{"name": "three", "path": "x.py"}, "x.py:three"])
def test_a_name_that_is_not_in_the_file_is_an_error_that_lists_its_tools(spec, folder):
    (folder / "x.py").write_text(TWO)

    with pytest.raises(ValueError, match=r"tool file 'x.py' has no tool 'three': it has 'one', 'second'"):
        provide(spec)


async def test_two_files_of_one_stem_stay_apart(folder, said):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "x.py").write_text(TWO.replace('"two"', f'"{name}"'))

    first, second = provide("a/x.py")[1], provide("b/x.py")[1]

    assert (await said(first), await said(second)) == ("a", "b")
    assert sys.modules[first.__module__].WORD == "a"
    assert sys.modules[second.__module__].WORD == "b"


async def test_a_changed_file_counts_when_it_is_named_again(folder, said, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (folder / "x.py").write_text(TWO)
    before = provide("x.py")[1]
    (folder / "x.py").write_text(TWO.replace('"two"', '"new"'))  # as long, and within the second
    after = provide("x.py")[1]

    assert (await said(before), await said(after)) == ("two", "new")
    assert not (folder / "__pycache__").exists()


def test_tools_that_a_file_only_imports_are_left_out(folder):
    (folder / "x.py").write_text(
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from base_tools import one\nfrom ropewalk_tools import tool\n\n@tool\ndef three(): ...\n"
    )
    (folder / "base_tools.py").write_text(TWO)
    path = list(sys.path)
    try:
        assert names_of(provide("x.py")) == ["three"]
    finally:
        sys.path[:] = path


@pytest.mark.parametrize(
    ("source", "problem", "cause"),
    [
        (None, r"tool file 'x.py' is missing: there is no .*x.py", FileNotFoundError),
        ("def broken(:\n", r"tool file 'x.py' is no valid Python: SyntaxError: .*line 1", SyntaxError),
        (
            "1 / 0\n",
            r"tool file 'x.py' raised ZeroDivisionError: division by zero while it was loaded",
            ZeroDivisionError,
        ),
        ("import no_such_thing\n", r"raised ModuleNotFoundError: No module named 'no_such_thing'", ModuleNotFoundError),
        ("raise SystemExit(3)\n", r"raised SystemExit: 3", SystemExit),
        ("open('nowhere.txt')\n", r"raised FileNotFoundError: .*nowhere.txt", FileNotFoundError),
        (
            "from ropewalk_tools import tool\n@tool\ndef f(*a): ...\n",
            r"raised ToolDefinitionError: tool 'f', parameter '\*a'",
            ToolDefinitionError,
        ),
        ("def plain(): ...\n", r"tool file 'x.py' has no tool in it: decorate a function there with @tool", None),
        (b"\xff\xfe\x00", r"tool file 'x.py' is no valid Python", SyntaxError),
        (b"a = '\xff'\n", r"tool file 'x.py' is no valid Python", SyntaxError),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_it_and_the_cause(source, problem, cause, folder):
    if source is not None:
        (folder / "x.py").write_bytes(source.encode() if isinstance(source, str) else source)

    before = set(sys.modules)
    with pytest.raises(ToolDefinitionError, match=problem) as caught:
        provide("x.py")

    assert isinstance(caught.value.__cause__, cause or type(None))
    if cause:
        assert not [name for name in set(sys.modules) - before if name.startswith("x_")]


def test_a_file_that_may_not_be_read_is_an_error(folder, monkeypatch):
    (folder / "x.py").write_text(TWO)

    def denied(self: Any, path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("importlib.machinery.SourceFileLoader.get_data", denied)
    with pytest.raises(
        ToolDefinitionError, match=r"'x.py' cannot be read: Permission denied: give this user the right"
    ):
        provide("x.py")


def test_a_folder_and_an_impossible_path_are_errors(folder):
    (folder / "x.py").mkdir()

    with pytest.raises(ToolDefinitionError, match=r"tool file 'x.py' is a folder: name one of the .py files"):
        provide("x.py")

    for path in ("a\0b.py", f"{'n' * 300}.py", "~no-such-user/x.py"):
        with pytest.raises(ToolDefinitionError, match=r"tool file .* is no usable path"):
            provide(path)


def test_a_file_that_is_broken_now_leaves_what_was_loaded_from_it(folder):
    (folder / "x.py").write_text(TWO)
    found = provide("x.py")[0]
    (folder / "x.py").write_text("1 / 0\n")
    with pytest.raises(ToolDefinitionError):
        provide("x.py")

    assert found.tool_spec["inputSchema"]["json"]["required"] == ["item"]


def test_interrupting_the_loading_is_no_tool_error(folder):
    (folder / "x.py").write_text("raise KeyboardInterrupt\n")

    with pytest.raises(KeyboardInterrupt):
        provide("x.py")


@pytest.mark.parametrize("value", [{"path": 3}, {"name": 3, "path": "x.py"}])
def test_a_dict_of_other_types_is_an_error(value):
    with pytest.raises(ToolDefinitionError, match="path and name are texts"):
        provide(value)


# -- modules -----------------------------------------------------------------------------------------------------


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package `kit_of_tools` with a submodule `parts`."""
    monkeypatch.syspath_prepend(str(folder))
    home = folder / "kit_of_tools"
    home.mkdir()
    (home / "parts.py").write_text(TWO + "\n\nclass Box:\n    inner = two\n")
    (home / "broken.py").write_text("1 / 0\n")
    (home / "__init__.py").write_text("from kit_of_tools.parts import one, two\n")
    return "kit_of_tools"


async def test_module_and_function_give_one_tool(package, said):
    found = provide(f"{package}.parts:two")

    assert names_of(found) == ["second"]
    assert await said(found) == "two"
    assert names_of(provide(f"{package}.parts:Box.inner")) == ["second"]
    assert names_of(provide(f"{package}:one")) == ["one"]


def test_a_module_object_gives_what_it_defines_or_lists(package):
    import importlib

    outer, inner = importlib.import_module(package), importlib.import_module(f"{package}.parts")
    other = types.ModuleType("other")
    other.one = inner.one

    assert names_of(provide(inner)) == ["one", "second"]
    assert names_of(provide(outer)) == ["one", "second"]
    with pytest.raises(ToolDefinitionError, match="module 'other' has no tool in it"):
        provide(other)

    other.__all__ = ["one"]
    assert names_of(provide(other)) == ["one"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("no_such_module:f", r"tool 'no_such_module:f': importing 'no_such_module' raised ModuleNotFoundError"),
        ("kit_of_tools.broken:f", r"importing 'kit_of_tools.broken' raised ZeroDivisionError"),
        ("kit_of_tools.parts:three", r"has no 'three': its tools are one, two"),
        ("kit_of_tools.parts:helper", r"tool 'kit_of_tools.parts:helper' is a plain function, not a tool: decorate it"),
        ("kit_of_tools.parts:WORD", r"'kit_of_tools.parts:WORD' is a str, not a tool"),
        ("kit_of_tools.parts:Item", r"'kit_of_tools.parts:Item' is a .*, not a tool"),
    ],
)
def test_a_module_or_function_that_is_none_is_an_error_that_says_so(spec, problem, package):
    with pytest.raises(ToolDefinitionError, match=problem):
        provide(spec)


# -- neither -----------------------------------------------------------------------------------------------------


def plain(n: int) -> int:
    return n


@pytest.mark.parametrize("spec", [plain, lambda: 1, len, functools.partial(plain, 1), "".join])
def test_a_plain_function_is_refused_with_the_fix(spec):
    with pytest.raises(ToolDefinitionError, match=r"decorate it with @tool \(from ropewalk import tool\)"):
        provide(spec)


@pytest.mark.parametrize("spec", [3, None, object(), "no tool", "https://a.b/c", "x-y", "", {}, {"name": "x"}, [plain]])
def test_what_is_not_ours_is_left_to_others(spec):
    assert provide(spec) is None


def test_loading_needs_no_tools_folder_and_leaves_the_path_alone(folder):
    (folder / "x.py").write_text(TWO)
    path, cwd = list(sys.path), os.getcwd()  # noqa: PTH109
    provide("x.py")

    assert (sys.path, os.getcwd()) == (path, cwd)  # noqa: PTH109
    assert tool(plain)(1) == 1
