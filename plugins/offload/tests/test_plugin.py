"""The offloader by name, with options."""

from __future__ import annotations

import pytest

import ropewalk
from ropewalk import Agent, PluginError
from ropewalk_offload import ContextOffloader, FolderStorage
from ropewalk_testing import ScriptedModel


def offloader_of(agent):
    return next(plugin for plugin in agent.hooks.plugins if plugin.name == "offload")


def agent_with(*plugins):
    return Agent(model=ScriptedModel([]), callback_handler=None, plugins=list(plugins))


def test_it_is_not_active_unasked():
    assert all(plugin.name != "offload" for plugin in agent_with().hooks.plugins)


def test_options_reach_it(tmp_path):
    options = {"storage": str(tmp_path), "max_result_tokens": 9, "preview_tokens": 3, "include_retrieval_tool": False}
    agent = agent_with(("offload", {**options, "evict_after_cycles": 7}))
    offloader = offloader_of(agent)
    assert isinstance(offloader._storage, FolderStorage)
    assert (offloader.max_result_tokens, offloader.preview_tokens, offloader.evict_after_cycles) == (9, 3, 7)
    assert agent.tool_names == []
    assert offloader_of(agent_with("offload")).evict_after_cycles == 20
    assert offloader_of(agent_with(("offload", {"evict_after_cycles": 0}))).evict_after_cycles is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_result_tokens": 500}, "preview_tokens=1000 must be less than max_result_tokens=500"),
        ({"max_result_tokens": 0}, "max_result_tokens"),
        ({"preview_tokens": -1}, "preview_tokens"),
        ({"evict_after_cycles": -1}, "evict_after_cycles"),
        ({"treshold": 5}, "no option 'treshold'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_do_not_fit_are_refused_by_name(options, said):
    with pytest.raises(PluginError, match="'offload'") as caught:
        agent_with(("offload", options))

    assert said in str(caught.value)


def test_the_name_imports_from_ropewalk():
    assert ropewalk.ContextOffloader is ContextOffloader
