"""The contract of plugins, with agents that have to fall back."""

from __future__ import annotations

from ropewalk import Agent
from ropewalk_fallback import FallbackModel, FallbackPlugin
from ropewalk_testing import PluginContract, ScriptedModel, text, use
from ropewalk_testing.contract import Echo


def away(request):
    raise ConnectionError("this one is never there")


class TestFallbackPlugin(PluginContract):
    plugin = FallbackPlugin

    def make_agent(self, plugin, word):
        asking = [text(f"{word} asks"), use("echo", {"value": f"{word} echoes"}, id=f"{word}-1")]
        behind = ScriptedModel([asking, f"{word} ends"])
        return Agent(model=FallbackModel([ScriptedModel(away), behind]), tools=[Echo()], plugins=[plugin])

    def outcome(self, agent, result):
        return *super().outcome(agent, result), result.state["fallback"]


class TestFallbackPluginWithModels(TestFallbackPlugin):
    def make(self):
        return FallbackPlugin(FallbackPlugin.Config(models=["testing:echo"]))

    def make_agent(self, plugin, word):
        if isinstance(plugin, str):
            return super().make_agent(plugin, word)

        return Agent(model=ScriptedModel(away), tools=[Echo()], plugins=[plugin])
