"""A throw-away environment that has the kernel, the testing plugin and pip's needs, and nothing else. No network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

WANTED = ["ropewalk-core", "ropewalk-testing", "hatchling", "pytest", "pytest-asyncio"]


@dataclass
class Throwaway:
    """A virtual environment to install into."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        """What a program of this environment prints; an error of it is the test's."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("ROPEWALK_", "PYTHON"))}
        finished = subprocess.run(
            [str(self.python), *arguments],
            check=False,
            cwd=cwd or self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    def pip(self, *arguments: str) -> None:
        """Runs our own pip on this environment."""
        quiet = ["--disable-pip-version-check", "--no-input", "--quiet"]
        finished = subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(self.python), *quiet, *arguments],
            check=False,
            env={**os.environ, "PIP_NO_INDEX": "1", "PIP_ROOT_USER_ACTION": "ignore"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr

    def install(self, folder: Path) -> None:
        self.pip("install", "--no-deps", "--no-build-isolation", str(folder))

    def uninstall(self, name: str) -> None:
        self.pip("uninstall", "--yes", name)


@pytest.fixture
def throwaway(tmp_path):
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    paths = sysconfig.get_paths(scheme="venv", vars={"base": str(folder), "platbase": str(folder)})
    site = Path(paths["purelib"])
    for name in needed(WANTED):
        for top in tops_of(name):
            target = site / top.name
            if not target.exists():
                target.symlink_to(top)

    return Throwaway(folder)


def needed(names):
    """The distributions, and what they depend on, as they are installed here."""
    found = []
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue

        found.append(name)
        wanted = [Requirement(text) for text in distribution(name).requires or []]
        todo += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]

    return found


def tops_of(name):
    """The files and folders of a distribution right below site-packages."""
    files = distribution(name).files or []
    names = {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__"}}
    return [Path(str(distribution(name).locate_file(each))) for each in names]
