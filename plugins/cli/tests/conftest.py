"""What the tests of the program share."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ropewalk_cli.main import program


@dataclass
class Shell:
    """A folder to work in, and the program."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(program, list(arguments), input=stdin, env=self.environment)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def script(self, *turns: object) -> str:
        """A model string for a script."""
        self.write("script.json", json.dumps(turns))
        return "testing:script.json"


@pytest.fixture
def shell(tmp_path, monkeypatch, ropewalk_env):
    """An empty current folder; modules that are imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    before = set(sys.modules)
    yield Shell(tmp_path)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
