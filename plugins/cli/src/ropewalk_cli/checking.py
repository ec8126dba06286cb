"""`ropewalk plugins check`: everything that would be refused about a plugin, at once and before it is published."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getmodule
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.discovery import ON_DEMAND, PARAMETERS, PLUGINS
from ropewalk.kits.hooks.loading import find, made
from ropewalk.kits.hooks.refusals import carries_hooks, check_plugin
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk_cli.exits import Exit
from ropewalk_cli.loading import LoadError, not_blank
from ropewalk_cli.main import debug_option
from ropewalk_cli.refused import deprecations_in, implemented_by, refusals_of
from ropewalk_cli.roles import missing_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

HEAVY: Final = ("boto3", "litellm", "mcp", "opentelemetry", "sqlalchemy", "xllamacpp")
"""Packages that take long to import, and that a plugin imports where it uses them."""

_CHILD: Final = """
import runpy, sys
sys.path[:0] = sys.argv[2].split({separator!r}) if sys.argv[2] else []
if sys.argv[1].endswith(".py"):
    runpy.run_path(sys.argv[1], run_name="checked_plugin")
else:
    __import__(sys.argv[1])
print(*sorted({heavy!r} & {{name.partition(".")[0] for name in sys.modules}}))
"""


class Findings:
    """What was found out about the plugins of one target.

    Attributes:
        plugins: Each plugin's name with the hooks that it implements.
        problems: What is wrong, a sentence each.
        deprecations: What works and will not with a later hook API, a sentence each.
    """

    def __init__(self) -> None:
        self.plugins: dict[str, list[str]] = {}
        self.problems: list[str] = []
        self.deprecations: list[str] = []

    def problem(self, text: str) -> None:
        """Notes a problem, once."""
        if text not in self.problems:
            self.problems.append(text)


@click.command()
@click.argument("target", metavar="PATH|NAME", callback=not_blank)
@debug_option
@click.pass_context
def check(context: click.Context, target: str) -> None:
    """Checks a plugin: a folder with a pyproject.toml, a .py file, or the name of an installed one.

    Signatures, unknown hooks, the range of the hook API, entry points, the constructor, and heavy imports. Lists every
    refusal, and ends with exit code 1 when there is one; what is deprecated is listed too, and is no error. The
    plugin's code is imported for it.
    """
    findings = findings_of(target)
    for name, hooks in findings.plugins.items():
        click.echo(f"{name}: {', '.join(hooks) or 'no hooks'}")

    for problem in findings.problems:
        click.echo(f"- {problem}")

    for deprecation in findings.deprecations:
        click.echo(f"~ {deprecation}")

    if findings.problems:
        click.secho(f"{_number(findings.problems, 'problem')} in {target}", fg="red", err=True)
        context.exit(Exit.ERROR)

    if findings.deprecations:
        click.secho(f"{_number(findings.deprecations, 'deprecation')} in {target}", fg="yellow", err=True)
    else:
        click.secho(f"nothing is wrong with {target}", fg="green", err=True)


def _number(found: list[str], what: str) -> str:
    return f"{len(found)} {what}{'s' if len(found) > 1 else ''}"


def findings_of(target: str) -> Findings:
    """Checks what a target names.

    Raises:
        LoadError: There is no such file or folder.
        PluginError: There is no such plugin.
    """
    findings = Findings()
    path = Path(target)
    if path.is_dir():
        _check_folder(path, findings)
    elif path.suffix == ".py" or os.sep in target or ("." in target and path.is_file()):
        if not path.is_file():
            raise LoadError(f"{target}: there is no such file or folder: give one, or the name of an installed plugin")

        _check_file(path, findings)
    else:
        plugin = find(target, f"ropewalk plugins check {target}")
        _check_entry(plugin.entry_point, findings, [], plugin.provides)

    return findings


# -- a folder ----------------------------------------------------------------------------------------------------


def _check_folder(folder: Path, findings: Findings) -> None:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        groups: dict[str, dict[str, str]] = project.get("entry-points", {})
        points = [EntryPoint(name, value, PLUGINS) for name, value in groups.get(PLUGINS, {}).items()]
    except FileNotFoundError:
        return findings.problem(f"{folder} has no pyproject.toml: a plugin is a package, see docs/write-a-plugin.md")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return findings.problem(f"{folder / 'pyproject.toml'} cannot be read as a project: {_shown(error)}: mend it")

    if not points:
        findings.problem(
            f'{folder}/pyproject.toml has no entry point in the group {PLUGINS}: add [project.entry-points."{PLUGINS}"]'
        )

    if not any(str(entry).startswith("ropewalk") for entry in project.get("dependencies", [])):
        findings.problem(f"{folder}/pyproject.toml does not depend on ropewalk-core: add it to the dependencies")

    known = {point.value for point in points}
    for group in (ON_DEMAND, PARAMETERS):
        for name, value in groups.get(group, {}).items():
            if value not in known:
                findings.problem(
                    f"{name} = {value} in the group {group} is no plugin of the group {PLUGINS}: use the same value"
                )

    folders = [str(each.resolve()) for each in (folder / "src", folder) if each.is_dir()]
    sys.path[:0] = folders
    try:
        for point in points:
            owned = [name for name, value in groups.get(PARAMETERS, {}).items() if value == point.value]
            _check_entry(point, findings, folders, owned)
    finally:
        for each in folders:
            sys.path.remove(each)

    return None


def _check_entry(point: EntryPoint, findings: Findings, folders: list[str], owned: Iterable[str]) -> None:
    label = f"entry point {point.name} = {point.value}"
    try:
        cls = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - told as a problem
        return findings.problem(f"{label} cannot be loaded: {_shown(error)}")

    if not isinstance(cls, type):
        return findings.problem(f"{label} is {type(cls).__name__} and not a plugin class: name the class")

    if getattr(cls, "name", None) != point.name:
        findings.problem(
            f"{label}: the class is named {getattr(cls, 'name', None)!r}: give the entry point and the class one name"
        )

    hooks = _check_class(cls, findings)
    for problem in missing_for(cls, hooks, owned) if hooks else ():
        findings.problem(problem)

    _check_imports(point.module, folders, findings)
    return None


# -- a file ------------------------------------------------------------------------------------------------------


def _check_file(path: Path, findings: Findings) -> None:
    try:
        module = _imported(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - told as a problem
        return findings.problem(f"{path} cannot be imported: {_shown(error)}")

    classes = list(_plugin_classes(module))
    if not classes:
        findings.problem(f"{path} has no plugin: a plugin class has a `name` and @hookimpl methods")

    for cls in classes:
        _check_class(cls, findings)

    _check_imports(str(path), [], findings)
    return None


def _imported(path: Path) -> ModuleType:
    name = f"checked_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is no Python file")

    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise

    return module


def _plugin_classes(module: ModuleType) -> Iterator[type]:
    """Classes that the module defines and that are plugins, or look as if they should be."""
    classes = [each for each in vars(module).values() if isinstance(each, type) and getmodule(each) is module]
    bases = {base for each in classes for base in each.__mro__[1:]}
    for cls in classes:
        named = isinstance(getattr(cls, "name", None), str)
        unmarked = named and any(hook in vars(cls) for hook in HOOKS)
        if (carries_hooks(cls) and (named or cls not in bases)) or unmarked:
            yield cls


# -- a class -----------------------------------------------------------------------------------------------------


def _check_class(cls: type[Any], findings: Findings) -> list[str]:
    """Checks a class, and gives the hooks that it implements; none when something is refused."""
    refusals = refusals_of(cls)
    for refusal in refusals:
        findings.problem(refusal)

    name = getattr(cls, "name", None)
    hooks = [] if refusals else implemented_by(cls)
    findings.deprecations += [] if refusals else deprecations_in(cls)
    findings.plugins[name if isinstance(name, str) else cls.__qualname__] = hooks
    if not refusals and hooks:
        _check_instance(cls, findings)
    elif not refusals:
        findings.problem(f"plugin {name!r} implements no hook: mark its methods with @hookimpl")

    return hooks


def _check_instance(cls: type[Any], findings: Findings) -> None:
    try:
        check_plugin(made(cls))
    except PluginError as error:
        findings.problem(str(error))
    except Exception as error:  # noqa: BLE001 - told as a problem
        findings.problem(
            f"{cls.__qualname__} cannot be made without options: {_shown(error)}: give all of them defaults"
        )


def _check_imports(module: str, folders: list[str], findings: Findings) -> None:
    code = _CHILD.format(heavy=set(HEAVY), separator=os.pathsep)
    arguments = [sys.executable, "-c", code, module, os.pathsep.join(folders)]
    child = subprocess.run(arguments, check=False, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        return findings.problem(f"importing {module} in a new interpreter fails: {last}")

    for name in (child.stdout.splitlines() or [""])[-1].split():
        findings.problem(f"importing {module} loads {name}: import it inside the function or constructor that uses it")

    return None


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
