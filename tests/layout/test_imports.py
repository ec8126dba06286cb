"""Importing is cheap: a heavy package is loaded by what uses it, when it is used."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ["boto3", "litellm", "mcp", "opentelemetry.sdk", "sqlalchemy", "xllamacpp"]


def loaded_by(statement):
    script = f"import json, sys\n{statement}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    finished = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return json.loads(finished.stdout)


def test_importing_a_package_loads_no_heavy_package(package):
    assert loaded_by(f"import {package.import_name}") == []


def test_a_heavy_package_would_be_seen():
    assert loaded_by("sys.modules['boto3'] = json") == ["boto3"]
