"""What importing costs (conformance 198; the time itself is the benchmark's)."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("boto3", "botocore", "litellm", "opentelemetry.sdk", "mcp", "sqlalchemy", "xllamacpp")


def loaded_by(code):
    """Runs code in a fresh interpreter and gives the heavy packages that it loaded."""
    script = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_ropewalk_loads_no_sdk():
    """Conformance 198 (B)."""
    assert loaded_by("import ropewalk; ropewalk.Agent") == []


def test_importing_every_plugin_loads_no_sdk():
    """Conformance 198 (B)."""
    code = (
        "from importlib.metadata import entry_points\n"
        "found = {e.name: e.load() for e in entry_points(group='ropewalk.plugins')}\n"
        "assert found, 'no plugin is installed'"
    )
    assert loaded_by(code) == []


def test_building_an_agent_loads_no_sdk():
    """Conformance 198 (B)."""
    assert loaded_by("from ropewalk import Agent\nAgent()") == []


def test_importing_the_kernel_imports_no_plugin():
    """Conformance 198 (B)."""
    code = (
        "import sys, ropewalk\n"
        "ropewalk.Agent\n"
        "found = [name for name in sys.modules if name.startswith('ropewalk_')]\n"
        "assert not found, found"
    )
    assert loaded_by(code) == []
