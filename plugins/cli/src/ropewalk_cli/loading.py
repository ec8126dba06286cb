"""Finds what the command line names: agents as `module:name`, tools as files, functions or plugins."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ropewalk.errors import RopewalkError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class LoadError(RopewalkError):
    """Something that the command line names cannot be imported, or is not what it should be."""


def use_current_folder() -> None:
    """Lets modules in the current folder be imported, as `python -m` does."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def not_blank(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The value of an option or argument, as a callback of click.

    Raises:
        click.BadParameter: It is blank, as the text of a variable is that is not set.
    """
    if any(not str(each).strip() for each in (value if isinstance(value, tuple) else (value,)) if each is not None):
        raise click.BadParameter("give a text that is not blank, or leave it out", context, parameter)

    return value


def not_blank_path(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """As `not_blank`, for a path: a blank one is the current folder."""
    if value == Path():
        raise click.BadParameter("give a path that is not blank, or leave it out", context, parameter)

    return value


def load_agent(spec: str) -> Any:
    """The agent that `module:name` or `file.py:name` stands for; a function of that name is called.

    Raises:
        click.BadParameter: The text has not that form.
        LoadError: There is no such agent.
    """
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise click.BadParameter(f"{spec!r} is not of the form module:name", param_hint="--agent")

    module = _import(place, spec)
    try:
        found = getattr(module, name)
    except AttributeError:
        names = ", ".join(sorted(each for each, value in vars(module).items() if is_agent(value))) or "none"
        raise LoadError(
            f"--agent {spec}: {place} has no {name!r}; the agents in it: {names}; "
            f"name one, or a function without parameters that makes one"
        ) from None

    made = _called(found, spec) if callable(found) and not is_agent(found) else found
    if not is_agent(made):
        raise LoadError(
            f"--agent {spec}: this is a {type(made).__name__}: name an Agent, or a function without parameters that "
            "returns one"
        )

    return made


def is_agent(value: Any) -> bool:
    """Whether the value can be run as an agent."""
    return not isinstance(value, type) and hasattr(value, "stream_async")


def _called(make: Any, spec: str) -> Any:
    try:
        return make()
    except RopewalkError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(f"--agent {spec}: calling it fails with {type(error).__name__}: {error}") from error


def _import(place: str, spec: str) -> ModuleType:
    use_current_folder()
    try:
        return _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except FileNotFoundError as error:
        raise LoadError(f"--agent {spec}: there is no file {place}") from error
    except ModuleNotFoundError as error:
        if error.name and place.split(".", maxsplit=1)[0] == error.name.split(".")[0]:
            raise LoadError(
                f"--agent {spec}: there is no module {error.name!r}, neither in {Path.cwd()} nor installed"
            ) from None

        raise LoadError(f"--agent {spec}: {place} needs the module {error.name!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"--agent {spec}: importing {place} fails with {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(path)

    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise ImportError(f"{path} is no Python file")

    module = importlib.util.module_from_spec(module_spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and pickles look their module up
    module_spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class ToolSources:
    """Where tools come from, by what `Agent` takes.

    Attributes:
        tools: Files and `module:function` texts, for `tools=`.
        plugins: Names of plugins that bring tools, for `plugins=`.
    """

    tools: list[str]
    plugins: list[str]


def sort_tools(values: Sequence[str]) -> ToolSources:
    """Tells files, functions and plugins apart.

    Raises:
        click.BadParameter: A file does not exist.
    """
    tools: list[str] = []
    plugins: list[str] = []
    for value in values:
        if value.endswith(".py") or os.sep in value:
            if not Path(value).is_file():
                raise click.BadParameter(f"there is no file {value}", param_hint="--tools")

            tools.append(str(Path(value).resolve()))
        elif ":" in value:
            use_current_folder()
            tools.append(value)
        else:
            plugins.append(value)

    return ToolSources(tools, plugins)
