"""The checks and the test matrix, derived from the folders. `nox -l` lists the sessions.

Tests of single packages run against built wheels, not the checkout, so that a file or a dependency that a package
forgot to declare shows here.

`nox` alone runs what fits into ten minutes, without the tests marked `long` and `model`, which `dev.py test` runs;
`nox -t full` also the layers, the other Pythons and the oldest and newest dependencies.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"  # an interpreter that is not there is a reason to skip, not to fetch one

PYTHONS: Final = ("3.11", "3.12", "3.13")
CURRENT: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
EVERYTHING: Final = f"everything-{CURRENT if CURRENT in PYTHONS else PYTHONS[0]}"
nox.options.sessions = ["lint", "imports", "types", "docs", "kernel", "alone", "pairs", EVERYTHING]

QUICK: Final = ("-m", "not long and not model")  # the others are in `dev.py test`, and in `nox -t full`

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


SHOW_VERSIONS: Final = (
    "from importlib.metadata import version as v; print('pluggy', v('pluggy'), 'pydantic', v('pydantic'))"
)
PYTEST: Final = tools("pytest", "pytest-asyncio", "pytest-xdist", "hypothesis")
SPREAD: Final = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")

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


def install_everything(session: nox.Session, *more: str) -> None:
    """Installs all packages from their wheels, with what their tests ask for.

    pip and hatchling are for the tests that install a plugin of somebody else.
    """
    others = {entry for folder in FOLDERS for entry in what_tests_need(folder)[1]}
    session.install(*PYTEST, *tools("hatchling"), "pip", *sorted(others), *more, *(wheel(folder) for folder in FOLDERS))


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
    session.run("python", "-m", "pytest", *SPREAD, "core", *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"])
@nox.parametrize(
    "package",  # the tags halve them, for machines that run two at once
    [
        nox.param(folder, id=folder.split("/")[1], tags=[f"half{number % 2 + 1}"])
        for number, folder in enumerate(FOLDERS[1:])
    ],
)
def alone(session: nox.Session, package: str) -> None:
    """The tests of one plugin, with the kernel and that plugin only; the long ones run with `dev.py test`."""
    install_alone(session, package)
    chosen = session.posargs or QUICK
    session.run("python", "-m", "pytest", *SPREAD, package, *chosen, **SHARED_OPTIONS)


@nox.session(requires=["build"])
def pairs(session: nox.Session) -> None:
    """Every plugin by the contract, every pair of plugins and all of them together, in one process."""
    install_everything(session)
    session.run("python", "-m", "pytest", *SPREAD, "tests/contract", "tests/combos", *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"], tags=["full"])
def layers(session: nox.Session) -> None:
    """The kernel, then one plugin more at a time: its tests, and all pairs of what is there by then.

    The testing plugin comes first, for the tests of the pairs; then what most agents have; then the others by name.
    """
    first = [name for name in ("testing", "tools", "executor") if name in PLUGINS]
    order = [f"plugins/{name}" for name in dict.fromkeys([*first, *PLUGINS])]
    session.install(*PYTEST, wheel("core"))
    session.run("python", "-m", "pytest", *SPREAD, "core", *session.posargs, **SHARED_OPTIONS)
    for folder in [*order, *(f"contrib/{name}" for name in CONTRIB)]:
        plugins, others = what_tests_need(folder)
        session.install(*others, *(wheel(place) for place in dict.fromkeys([folder, *plugins])))
        session.run("python", "-m", "pytest", *SPREAD, folder, "tests/combos", *session.posargs, **SHARED_OPTIONS)


def run_everything(session: nox.Session) -> None:
    """All tests, with all packages in one environment; without the long ones where it is part of `nox` alone."""
    install_everything(session)
    beside = ("--ignore=tests/contract", "--ignore=tests/combos")  # `pairs` runs them, in the same environment
    chosen = session.posargs or ((*QUICK, *beside) if session.name == EVERYTHING else ())
    session.run("python", "-m", "pytest", *SPREAD, *chosen, **SHARED_OPTIONS)


def works(python: str) -> bool:
    """Whether an interpreter is there and starts: a shim may stand for one that is not selected."""
    if python == CURRENT:
        return True

    found = shutil.which(f"python{python}")
    return found is not None and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0


def skipping(python: str) -> Callable[[nox.Session], None]:
    """A session that says why it does not run."""

    def skip(session: nox.Session) -> None:
        session.skip(f"no python{python} that starts is on the path")

    skip.__doc__ = run_everything.__doc__
    return skip


for version in PYTHONS:
    if works(version):
        nox.session(run_everything, name=f"everything-{version}", python=version, requires=["build"], tags=["full"])
    else:
        nox.session(skipping(version), name=f"everything-{version}", python=False, tags=["full"])


@nox.session(requires=["build"], tags=["full"])
@nox.parametrize("dependencies", ["oldest", "newest"], ids=["oldest", "newest"])
def versions(session: nox.Session, dependencies: str) -> None:
    """All tests with the oldest and the newest pluggy and pydantic that the kernel allows."""
    asked = {"oldest": ("pluggy==1.6.0", "pydantic==2.7.0"), "newest": ("pluggy>=1.6,<2", "pydantic>=2.7,<3")}
    upgrade = ["--upgrade"] if dependencies == "newest" else []
    install_everything(session, *upgrade, *asked[dependencies])
    session.run("python", "-c", SHOW_VERSIONS)
    session.run("python", "-m", "pytest", *SPREAD, *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"], tags=["full"])
def crash(session: nox.Session) -> None:
    """Kills runs before and after every record that they write, on every store, and goes on in another process."""
    install_everything(session)
    arguments = ["tests/crash", "plugins/testing/tests/crash", "--services"]
    everything = {**SHARED_OPTIONS["env"], "ROPEWALK_CRASH": "all"}
    session.run("python", "-m", "pytest", *arguments, *session.posargs, env=everything)


@nox.session(requires=["build"], tags=["full"])
def bench(session: nox.Session) -> None:
    """One short round of the benchmarks: whether they run, and whether a bar is missed by far."""
    session.install(*(wheel(folder) for folder in FOLDERS))
    session.run("python", "benchmarks/run.py", "--quick", "--check")  # further arguments are pytest's


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
def docs(session: nox.Session) -> None:
    """The pages: the hooks' as their generator writes them, the examples, the tutorial, the links."""
    install_everything(session)
    session.run("python", "docs/generate_hooks.py", "--check")
    pages = ["tests/docs", "tests/contract/test_tutorial.py", "tests/layout/test_docs.py"]
    session.run("python", "-m", "pytest", *SPREAD, *pages, *session.posargs, **SHARED_OPTIONS)


@nox.session(requires=["build"])
def types(session: nox.Session) -> None:
    """Mypy, strict, over all sources."""
    install_everything(session, *tools("mypy"))
    scripts = ["dev.py", "examples", "docs/generate_hooks.py"]
    session.run("mypy", *(f"{folder}/src" for folder in FOLDERS), *scripts)
