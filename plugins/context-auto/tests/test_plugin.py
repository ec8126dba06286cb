"""What `context_manager="auto"` stands for."""

from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_context_auto import ContextAutoPlugin
from ropewalk_testing import ScriptedModel


def adopted(value, **options):
    plugin = ContextAutoPlugin(ContextAutoPlugin.Config(**options))
    return plugin.adopt("context_manager", value)


def test_auto_is_a_summarizer_and_an_offloader_by_name():
    assert adopted("auto") == [
        ("summarize", {"summary_ratio": 0.3, "compression_threshold": 0.85, "gives_way": True}),
        ("offload", {"max_result_tokens": 1_500, "preview_tokens": 750}),
    ]


def test_options_change_the_values():
    (_, summarize), (_, offload) = adopted("auto", summary_ratio=0.5, max_result_tokens=9_000)

    assert summarize["summary_ratio"] == 0.5
    assert offload["max_result_tokens"] == 9_000


def test_agentic_is_left_to_its_own_plugin():
    assert adopted("agentic") is None


@pytest.mark.parametrize("value", ["Auto", "", 3, False, ["auto"], {"auto": True}])
def test_any_other_value_is_refused_with_the_presets(value):
    with pytest.raises(ValueError, match="give 'auto' or 'agentic'"):
        adopted(value)


def test_an_agent_refuses_it_when_it_is_built():
    with pytest.raises(ValueError, match="there is no such preset"):
        Agent(model=ScriptedModel([]), context_manager="automatic")
