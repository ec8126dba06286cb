"""What the layout tests look at: the packages, read from their folders."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Package:
    """One distribution of this repository."""

    folder: str
    data: dict[str, Any]

    @property
    def path(self) -> Path:
        return ROOT / self.folder

    @property
    def project(self) -> dict[str, Any]:
        return self.data["project"]

    @property
    def name(self) -> str:
        return self.project["name"]

    @property
    def short_name(self) -> str:
        return self.folder.rsplit("/", maxsplit=1)[-1]

    @property
    def import_name(self) -> str:
        return "ropewalk" if self.folder == "core" else f"ropewalk_{self.short_name.replace('-', '_')}"

    @property
    def source(self) -> Path:
        return self.path / "src" / self.import_name

    @property
    def modules(self) -> list[Path]:
        return sorted(self.source.rglob("*.py"))

    def entry_points(self, group: str) -> dict[str, str]:
        return self.project.get("entry-points", {}).get(group, {})


def load(folder: str) -> Package:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    return Package(folder, tomllib.loads(text))


def folders(parent: str) -> list[str]:
    return sorted(f"{parent}/{path.name}" for path in (ROOT / parent).iterdir() if path.is_dir() and holds_files(path))


def holds_files(folder: Path) -> bool:
    """Whether there is more than what a deleted package leaves behind (caches in empty folders)."""
    return any(path.is_file() and "__pycache__" not in path.parts for path in folder.rglob("*"))


PLUGINS = [load(folder) for folder in folders("plugins")]
CONTRIB = [load(folder) for folder in folders("contrib")]
PACKAGES = [load("core"), *PLUGINS, *CONTRIB]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, values in {"package": PACKAGES, "plugin": PLUGINS + CONTRIB}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values, ids=[value.folder for value in values])


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def meta() -> Package:
    """The root distribution, which has no code."""
    return load(".")


@pytest.fixture
def packages() -> list[Package]:
    return PACKAGES


@pytest.fixture
def plugins() -> list[Package]:
    return PLUGINS
