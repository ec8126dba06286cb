"""Every plugin that is installed here passes the contract that the testing plugin offers to others."""

from __future__ import annotations

import pytest

from ropewalk.kits.hooks import discovery
from ropewalk_testing import PluginContract

OURS = {
    name: plugin
    for name, plugin in discovery.registry().installed.items()
    if plugin.distribution.startswith("ropewalk-")
}


@pytest.fixture(scope="class", params=sorted(OURS))
def each(request):
    request.cls.plugin = OURS[request.param].entry_point.load()


@pytest.mark.usefixtures("each")
class TestEveryPlugin(PluginContract):
    """Once per plugin."""


def test_there_are_plugins():
    assert {"tools", "executor", "console", "cli", "testing"} <= set(OURS)
