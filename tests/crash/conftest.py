"""How much is killed: every place, or a sample where a store is slow."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def sample(request):
    """How many kills a slow store is put to: all with `nox -s crash`, 60 with --services, else a few."""
    if os.environ.get("ROPEWALK_CRASH") == "all":
        return None

    return 60 if request.config.getoption("--services") else 15


def _fixtures_of(plugin):
    """The conftest of a plugin's own tests, which starts the server that its store needs."""
    path = Path(__file__).parents[2] / "plugins" / plugin / "tests" / "conftest.py"
    spec = importlib.util.spec_from_file_location(f"conftest_of_{plugin.replace('-', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if importlib.util.find_spec("ropewalk_session_sql"):
    postgres = _fixtures_of("session-sql").postgres

if importlib.util.find_spec("ropewalk_session_s3"):
    endpoint = _fixtures_of("session-s3").endpoint
