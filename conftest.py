"""What every test run in this repository knows, whatever part of it is run."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time and on each machine, however slow; nothing is remembered between runs.
settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --services."""
    parser.addoption(
        "--services",
        action="store_true",
        help="also run the tests marked `service`; a service that is missing is a failure then",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips what needs a service, unless asked for."""
    if config.getoption("--services"):
        return

    skip = pytest.mark.skip(reason="needs a service: run with --services")
    for item in items:
        if item.get_closest_marker("service"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Spares the collector the tests themselves: some of them collect often, and thousands stand in the heap."""
    gc.collect()
    gc.freeze()
