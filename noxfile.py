"""The checks and the test matrix, derived from the folders. `nox -l` lists the sessions.

Tests of single packages run against built wheels, not the checkout, so that a file or a dependency that a package
forgot to declare shows here.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "imports", "types", "kernel", "alone", "everything"]

ROOT: Final = Path(__file__).parent
SHARED_OPTIONS: Final = {"env": {"PYTHONSAFEPATH": "1"}}  # the checkout is not importable by accident


def packages_in(folder: str) -> list[str]:
    """The names of the packages in a folder."""
    return sorted(path.parent.name for path in (ROOT / folder).glob("*/pyproject.toml"))


PLUGINS: Final = packages_in("plugins")
CONTRIB: Final = packages_in("contrib")
FOLDERS: Final = ["core", *(f"plugins/{name}" for name in PLUGINS), *(f"contrib/{name}" for name in CONTRIB)]


def project(folder: str) -> dict[str, Any]:
    """What a package's pyproject.toml says."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def tools(*names: str) -> list[str]:
    """Development tools, with the versions of requirements-dev.txt."""
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    versions = {re.split("[=<>~!]", line)[0]: line for line in lines if re.match("[a-z]", line)}
    return [versions[name] for name in names]


PYTEST: Final = tools("pytest", "pytest-asyncio", "hypothesis")

# -- wheels ------------------------------------------------------------------------------------------------------

WHEELS: Final = Path(tempfile.mkdtemp(prefix="ropewalk-wheels-"))
atexit.register(shutil.rmtree, WHEELS, ignore_errors=True)


@nox.session
def build(session: nox.Session) -> None:
    """The wheel of each package, into a folder that lives as long as this run of nox."""
    session.install(*tools("hatchling"))
    for folder in FOLDERS:
        session.chdir(ROOT / folder)
        session.run("hatchling", "build", "-t", "wheel", "-d", str(WHEELS), silent=True)


def wheel(folder: str) -> str:
    """The built wheel of a package."""
    name = project(folder)["project"]["name"].replace("-", "_")
    return str(next(WHEELS.glob(f"{name}-*.whl")))


def what_tests_need(folder: str) -> tuple[list[str], list[str]]:
    """The folders of other plugins, and the requirements from elsewhere, that a package's tests use.

    Both stand in the extra `test`; `[tool.ropewalk] test-plugins` may name more plugins.
    """
    content = project(folder)
    extra = content["project"].get("optional-dependencies", {}).get("test", [])
    folder_of = {project(other)["project"]["name"]: other for other in FOLDERS}
    own = {entry: folder_of.get(entry.split("=")[0].split("[")[0].strip()) for entry in extra}
    named = content.get("tool", {}).get("ropewalk", {}).get("test-plugins", [])
    plugins = {f"plugins/{name}" for name in named} | {place for place in own.values() if place}
    return sorted(plugins), [entry for entry, place in own.items() if place is None]


def install_alone(session: nox.Session, folder: str) -> None:
    """Installs the kernel and one package from their wheels, and what the package's tests ask for."""
    plugins, others = what_tests_need(folder)
    wanted = dict.fromkeys(["core", folder, *plugins])
    session.install(*PYTEST, *others, *(wheel(place) for place in wanted))


# -- tests -------------------------------------------------------------------------------------------------------


@nox.session(requires=["build"])
def kernel(session: nox.Session) -> None:
    """The kernel's tests with no plugin installed."""
    install_alone(session, "core")
    session.run("python", "-m", "pytest", "core", *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"])
@nox.parametrize("package", FOLDERS[1:], ids=[folder.split("/")[1] for folder in FOLDERS[1:]])
def alone(session: nox.Session, package: str) -> None:
    """The tests of one plugin, with the kernel and that plugin only."""
    install_alone(session, package)
    session.run("python", "-m", "pytest", package, *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"])
def everything(session: nox.Session) -> None:
    """All tests, with all packages in one environment."""
    others = {entry for folder in FOLDERS for entry in what_tests_need(folder)[1]}
    session.install(*PYTEST, *sorted(others), *(wheel(folder) for folder in FOLDERS))
    session.run("python", "-m", "pytest", *session.posargs, **SHARED_OPTIONS)


# -- checks ------------------------------------------------------------------------------------------------------


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    session.install(*tools("ruff"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def imports(session: nox.Session) -> None:
    """Who imports whom."""
    session.install(*tools("import-linter"))
    # import-linter reads the sources and imports nothing, so nothing has to be installed for it.
    sources = os.pathsep.join(str(ROOT / folder / "src") for folder in FOLDERS)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": sources})


@nox.session(requires=["build"])
def types(session: nox.Session) -> None:
    """Mypy, strict, over all sources."""
    others = {entry for folder in FOLDERS for entry in what_tests_need(folder)[1]}
    session.install(*tools("mypy"), *PYTEST, *sorted(others), *(wheel(folder) for folder in FOLDERS))
    session.run("mypy", *(f"{folder}/src" for folder in FOLDERS), "dev.py", "examples")
