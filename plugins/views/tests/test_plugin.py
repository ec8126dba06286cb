"""The plugin."""

from __future__ import annotations

import subprocess
import sys

from ropewalk_testing import PluginContract
from ropewalk_views import ViewsPlugin


class TestContract(PluginContract):
    plugin = ViewsPlugin


def test_the_commands_are_those_of_the_program():
    assert [command.name for command in ViewsPlugin().provide_commands()] == ["sessions", "trace", "diff", "fork"]


def test_importing_the_plugin_does_not_import_click():
    program = "import sys, ropewalk_views; sys.exit('click' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
