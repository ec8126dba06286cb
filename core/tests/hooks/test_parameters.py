from __future__ import annotations

import inspect

import pytest

from ropewalk.kits.hooks.parameters import (
    BUNDLED,
    EXTRAS,
    KNOWN_PLUGINS,
    PARAMETER_VALUES,
    PARAMETERS,
    SWITCHED_OFF_BY_NONE,
    distribution_of,
)


def test_no_plugin_is_bundled_and_an_extra():
    assert not BUNDLED & EXTRAS
    assert set(KNOWN_PLUGINS) == BUNDLED | EXTRAS


def test_every_parameter_leads_to_a_known_plugin():
    known = set(KNOWN_PLUGINS.values())

    assert set(PARAMETERS.values()) <= known
    assert set(PARAMETER_VALUES.values()) <= known
    assert set(SWITCHED_OFF_BY_NONE.values()) <= set(KNOWN_PLUGINS)


@pytest.mark.parametrize(
    ("parameter", "value", "distribution"),
    [
        ("context_manager", "auto", "ropewalk-context-auto"),
        ("context_manager", "agentic", "ropewalk-context-agentic"),
        ("context_manager", ["agentic"], "ropewalk-context-auto"),
        ("model.local", None, "ropewalk-local"),
        ("colour", None, None),
    ],
)
def test_the_distribution_depends_on_parameter_and_value(parameter, value, distribution):
    assert distribution_of(parameter, value) == distribution


def test_every_parameter_of_an_agent_that_a_plugin_owns_is_in_the_table():
    from ropewalk import Agent

    plain = {"self", "model", "messages", "system_prompt", "record_direct_tool_call", "plugins"}
    plain |= {"agent_id", "name", "description", "state"}

    assert set(inspect.signature(Agent.__init__).parameters) - plain <= set(PARAMETERS)
