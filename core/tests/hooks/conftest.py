"""A folder of fake distributions, and a process that sees no others."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from ropewalk.kits.hooks import discovery

PLUGIN = """
from ropewalk.markers import hookimpl


class Plugin:
    name = "{name}"

    @hookimpl
    async def on_event(self, event): ...
"""


def forget():
    """As in a new process: what is installed is read anew, and the policies too, which a refresh keeps."""
    discovery.refresh()
    discovery._policies = None


class Site:
    """Writes distributions into a folder as an installer does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        name: str,
        *,
        version: str = "1.0",
        plugins: dict[str, str] | None = None,
        on_demand: dict[str, str] | None = None,
        parameters: dict[str, str] | None = None,
        modules: dict[str, str] | None = None,
        folder: Path | None = None,
        suffix: str = "dist-info",
    ) -> None:
        groups = {"ropewalk.plugins": plugins, "ropewalk.on_demand": on_demand, "ropewalk.parameters": parameters}
        lines: list[str] = []
        for group, points in groups.items():
            if points:
                lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]

        self.write(name, version, "\n".join(lines), folder or self.folder, suffix)
        for module, source in (modules or {}).items():
            ((folder or self.folder) / f"{module}.py").write_text(dedent(source))

    def write(self, name: str, version: str, entry_points: str, folder: Path, suffix: str = "dist-info") -> None:
        info = folder / f"{name.replace('-', '_')}-{version}.{suffix}"
        info.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / ("METADATA" if suffix == "dist-info" else "PKG-INFO")).write_text(metadata)
        (info / "entry_points.txt").write_text(entry_points)
        forget()

    def plugin(
        self, name: str, *, on_demand: bool = False, parameters: list[str] | None = None, source: str = ""
    ) -> None:
        """One distribution `fake-<name>` with one plugin, class `Plugin` of module `fake_<name>`."""
        module = f"fake_{name.replace('-', '_')}"
        value = f"{module}:Plugin"
        self.add(
            f"fake-{name}",
            plugins={name: value},
            on_demand={name: value} if on_demand else None,
            parameters=dict.fromkeys(parameters or [], value),
            modules={module: dedent(source) or PLUGIN.format(name=name)},
        )


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(
        importlib.metadata, "distributions", partial(importlib.metadata.distributions, path=[str(folder)])
    )
    yield Site(folder)
    for module in [key for key, value in sys.modules.items() if str(tmp_path) in str(getattr(value, "__file__", ""))]:
        del sys.modules[module]


@pytest.fixture(autouse=True)
def _clean_process(tmp_path, monkeypatch):
    """No variables of ours, a folder without files, and a new registry before and after."""
    for variable in list(os.environ):
        if variable.startswith("ROPEWALK_"):
            monkeypatch.delenv(variable)

    monkeypatch.chdir(tmp_path)
    forget()
    yield
    forget()
