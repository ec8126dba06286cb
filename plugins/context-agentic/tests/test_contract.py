"""What every plugin keeps."""

from __future__ import annotations

from ropewalk_context_agentic import ContextAgenticPlugin
from ropewalk_testing import PluginContract


class TestContract(PluginContract):
    plugin = ContextAgenticPlugin
