"""Loads tools from Python files and modules."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import Tool
from ropewalk_tools.function_tool import FunctionTool
from ropewalk_tools.module_tool import module_tool


def tools_of_file(path: str | Path, name: str | None = None) -> list[Tool]:
    """The tools that a Python file defines, in the order of their definition.

    The file is run; each call runs it again, so that a changed file counts. A relative path starts at the working
    directory, `~` is the home directory.

    Args:
        path: The file.
        name: The only tool wanted.

    Raises:
        ToolDefinitionError: The file is missing, cannot be read or run, or has no such tool.
    """
    where = f"tool file {str(path)!r}"
    tools = tools_of_module(_run_file(_located(path, where), where), where)
    return tools if name is None else [_named(tools, name, where)]


def tools_in_file(path: Path) -> tuple[str, list[Tool]]:
    """As `tools_of_file`, but a file may have no tool.

    Returns:
        The name of the file's module, the same for each version of it, and the tools.
    """
    where = f"tool file {str(path)!r}"
    module = _run_file(_located(path, where), where)
    return module.__name__, _tools_in(module, where)


def tools_of_module(module: ModuleType, where: str | None = None) -> list[Tool]:
    """The tools that a module or package defines, or lists in `__all__`; tools it only imports are left out.

    Raises:
        ToolDefinitionError: It has none.
    """
    where = where or f"module {module.__name__!r}"
    found = _tools_in(module, where)
    if not found:
        raise ToolDefinitionError(f"{where} has no tool in it: decorate a function there with @tool")

    return found


def tools_of_named_module(module_name: str) -> list[Tool]:
    """The tools of a module that may have to be imported.

    Raises:
        ToolDefinitionError: It cannot be imported, or has none.
    """
    where = f"tools={module_name!r} (there is no tools/{module_name}.py here)"
    return tools_of_module(_imported(module_name, where), where)


def _tools_in(module: ModuleType, where: str) -> list[Tool]:
    listed = getattr(module, "__all__", ())
    found = {
        id(value): value
        for name, value in vars(module).items()
        if is_tool(value) and (name in listed or _is_defined_in(module, value))
    }
    by_spec = module_tool(module, where)
    return [*found.values(), by_spec] if by_spec is not None else list(found.values())


def tool_at(module_name: str, attribute: str) -> Tool:
    """The tool `module:attribute`.

    Raises:
        ToolDefinitionError: The module cannot be imported, or has no such tool.
    """
    where = f"tool '{module_name}:{attribute}'"
    module = _imported(module_name, where)
    try:
        value: Any = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        known = ", ".join(name for name, value in vars(module).items() if is_tool(value)) or "none"
        raise ToolDefinitionError(
            f"{where}: module {module_name!r} has no {attribute!r}: its tools are {known}"
        ) from error

    if is_tool(value):
        return value  # type: ignore[no-any-return]

    by_spec = module_tool(module, where)
    if by_spec is not None and by_spec.__name__ == attribute:
        return by_spec

    raise not_a_tool(value, where)


def not_a_tool(value: Any, where: str) -> ToolDefinitionError:
    """The error for something that was meant as a tool."""
    what = "a plain function" if inspect.isroutine(value) else f"a {type(value).__name__}"
    return ToolDefinitionError(f"{where} is {what}, not a tool: decorate it with @tool (from ropewalk import tool)")


def _imported(module_name: str, where: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ToolDefinitionError(
            f"{where}: importing {module_name!r} raised {_told(error)}: install it, or start where it can be found"
        ) from error


def _is_defined_in(module: ModuleType, value: Any) -> bool:
    if not isinstance(value, FunctionTool):
        return True  # an object with its class elsewhere

    return value.__module__ == module.__name__ or value.__module__.startswith(f"{module.__name__}.")


def _named(tools: list[Tool], name: str, where: str) -> Tool:
    for candidate in tools:
        if name in {candidate.tool_name, getattr(candidate, "__name__", None)}:
            return candidate

    known = ", ".join(repr(candidate.tool_name) for candidate in tools)
    raise ToolDefinitionError(f"{where} has no tool {name!r}: it has {known}")


class _FreshLoader(SourceFileLoader):
    """Compiles the source each time: a .pyc in the cache counts as current when second and size agree."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _located(path: str | Path, where: str) -> Path:
    try:
        file = (Path.cwd() / Path(path).expanduser()).resolve()
        is_folder = file.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a null byte, no such home, a loop of links
        raise ToolDefinitionError(f"{where} is no usable path: {_told(error)}: name a .py file") from error

    if is_folder:
        raise ToolDefinitionError(f"{where} is a folder: name one of the .py files in it")

    return file


def _run_file(file: Path, where: str) -> ModuleType:
    # one module name per path: two files of the same stem stay apart, and pydantic finds the names of the file
    name = f"{file.stem}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_loader(name, _FreshLoader(name, str(file)))
    assert spec is not None  # noqa: S101 - for mypy: only a loader without `exec_module` gives None
    assert spec.loader is not None  # noqa: S101 - as above
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        _put_back(name, before)
        if not isinstance(error, Exception | SystemExit):
            raise

        raise ToolDefinitionError(_why(error, file, where)) from error

    return module


def _put_back(name: str, before: ModuleType | None) -> None:
    if before is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = before


def _why(error: BaseException, file: Path, where: str) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == str(file):
        return f"{where} is missing: there is no {file}"

    if isinstance(error, OSError) and error.filename == str(file):
        return f"{where} cannot be read: {error.strerror}: give this user the right to read {file}"

    if isinstance(error, SyntaxError):
        return f"{where} is no valid Python: {_told(error)}: correct it"

    return f"{where} raised {_told(error)} while it was loaded: correct it, or install what it needs"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
