"""What every plugin keeps."""

from __future__ import annotations

from ropewalk_context_auto import ContextAutoPlugin
from ropewalk_testing import PluginContract


class TestContract(PluginContract):
    plugin = ContextAutoPlugin
