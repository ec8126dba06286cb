"""What every plugin keeps."""

from __future__ import annotations

from ropewalk_summarize import SummarizePlugin
from ropewalk_testing import PluginContract


class TestContract(PluginContract):
    plugin = SummarizePlugin
