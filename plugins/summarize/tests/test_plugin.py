"""The manager by name."""

from __future__ import annotations

import pytest

from ropewalk import Agent, ContextWindowOverflowException, SummarizingConversationManager
from ropewalk.errors import PluginError
from ropewalk_testing import ScriptedModel


def full():
    return ContextWindowOverflowException("full")


def agent_of(script, chat, **parameters):
    return Agent(model=ScriptedModel(script), messages=chat(20), callback_handler=None, **parameters)


def test_it_is_active_by_name_with_options(chat):
    agent = agent_of([full(), "In short.", "Answer."], chat, plugins=[("summarize", {"preserve_recent_messages": 4})])

    agent("Go on.")

    assert agent.messages[0]["content"][0]["text"].endswith("In short.")


def test_one_that_gives_way_does_so(chat):
    mine = SummarizingConversationManager(summarization_system_prompt="Mine.")
    mine.name = "mine"
    agent = agent_of([full(), "In short.", "Answer."], chat, plugins=[("summarize", {"gives_way": True}), mine])

    agent("Go on.")

    assert agent.model.requests[1].system == ({"text": "Mine."},)
    assert agent.model.calls == 3


@pytest.mark.parametrize("options", [{"compression_threshold": 2}, {"preserve_recent_messages": -1}, {"ratio": 1}])
def test_wrong_options_are_refused(chat, options):
    with pytest.raises(PluginError, match="summarize"):
        agent_of([], chat, plugins=[("summarize", options)])
