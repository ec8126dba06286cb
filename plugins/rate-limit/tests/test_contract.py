"""The contract of plugins, with limits that are counted."""

from __future__ import annotations

from ropewalk_rate_limit import RateLimitPlugin
from ropewalk_testing import PluginContract


class TestRateLimitPlugin(PluginContract):
    plugin = RateLimitPlugin

    def make(self):
        return RateLimitPlugin(RateLimitPlugin.Config(requests_per_minute=10_000, tokens_per_minute=10_000_000))
