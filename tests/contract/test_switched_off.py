"""What a plugin provides is not to be had from an agent that has switched it off."""

from __future__ import annotations

import pytest

from ropewalk import Agent, MissingPluginError
from ropewalk.kits.hooks import discovery
from ropewalk_testing import ScriptedModel


@pytest.fixture(autouse=True)
def _clean(ropewalk_env):
    discovery.refresh()
    yield
    discovery.refresh()


@pytest.mark.parametrize("parameter", ["callback_handler", "tool_executor"])
def test_a_parameter_of_a_plugin_that_is_off_names_it(parameter):
    plugin = discovery.registry().owners[parameter][0]
    wanted = f"plugin '{plugin}' is switched off by plugins"
    with pytest.raises(MissingPluginError, match=wanted):
        Agent(model=ScriptedModel(["Hello."]), plugins=[f"-{plugin}"], **{parameter: print})


def test_a_model_string_of_a_plugin_that_is_off_names_it():
    agent = Agent(model="testing:echo", plugins=["-testing"], callback_handler=None)
    with pytest.raises(MissingPluginError, match="'testing' is switched off"):
        agent("Hello.")


def test_a_model_string_of_a_plugin_that_the_environment_switches_off_names_it(monkeypatch):
    monkeypatch.setenv("ROPEWALK_PLUGINS", "-testing")
    with pytest.raises(MissingPluginError, match="'testing' is switched off by ROPEWALK_PLUGINS"):
        Agent(model="testing:echo", callback_handler=None)("Hello.")
