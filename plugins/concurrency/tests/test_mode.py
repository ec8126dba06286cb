"""The mode: how it is given, and what it says."""

from __future__ import annotations

import pytest

from ropewalk import Agent, PluginError
from ropewalk_concurrency import ConcurrencyPlugin, ConcurrentInvocationMode, ReentrantPlugin

THROW, REENTRANT = ConcurrentInvocationMode.THROW, ConcurrentInvocationMode.UNSAFE_REENTRANT


def plugins(agent):
    return [type(plugin) for plugin in agent.hooks.plugins if plugin.name == "concurrency"]


def test_modes_are_the_words_that_users_know():
    assert (THROW, REENTRANT) == ("throw", "unsafe_reentrant")
    assert [str(mode) for mode in ConcurrentInvocationMode] == ["throw", "unsafe_reentrant"]


@pytest.mark.parametrize(
    ("parameters", "mode", "plugin"),
    [
        ({}, THROW, ConcurrencyPlugin),
        ({"concurrent_invocation_mode": THROW}, THROW, ConcurrencyPlugin),
        ({"concurrent_invocation_mode": "throw"}, THROW, ConcurrencyPlugin),
        ({"concurrent_invocation_mode": REENTRANT}, REENTRANT, ReentrantPlugin),
        ({"concurrent_invocation_mode": "unsafe_reentrant"}, REENTRANT, ReentrantPlugin),
        ({"concurrent_invocation_mode": REENTRANT, "plugins": ["concurrency"]}, REENTRANT, ReentrantPlugin),
    ],
    ids=str,
)
def test_an_agent_has_the_mode_that_it_was_given(parameters, mode, plugin):
    agent = Agent(**parameters)
    assert agent.concurrent_invocation_mode is mode
    assert agent.clone().concurrent_invocation_mode is mode
    assert plugins(agent) == [plugin]


def test_throw_keeps_the_options_of_the_plugin():
    configured = ("concurrency", {"remember_seconds": 60})
    agent = Agent(plugins=[configured], concurrent_invocation_mode=THROW)
    assert plugins(agent) == [ConcurrencyPlugin]
    assert [plugin._books._seconds for plugin in agent.hooks.plugins if plugin.name == "concurrency"] == [60]


@pytest.mark.parametrize("value", ["often", 1, None, ..., ConcurrentInvocationMode], ids=repr)
def test_what_is_no_mode_is_refused_where_the_agent_is_made(value):
    with pytest.raises(ValueError, match=r"concurrent_invocation_mode=.* 'throw' or 'unsafe_reentrant'"):
        Agent(concurrent_invocation_mode=value)


@pytest.mark.parametrize("options", [{"remember_seconds": 0}, {"remember_count": 0}, {"remember": 1}], ids=str)
def test_a_wrong_option_is_refused(options):
    with pytest.raises(PluginError, match="plugin 'concurrency'"):
        Agent(plugins=[("concurrency", options)])
