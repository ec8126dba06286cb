"""What `context_manager="auto"` stands for."""

from __future__ import annotations

import pytest

from ropewalk import Agent, hookimpl
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


class Mine:
    """A context plugin that is no `ConversationManager`: it has the hook and nothing else."""

    name = "mine"

    def __init__(self):
        self.reasons = []

    @hookimpl
    async def manage_context(self, reason):
        self.reasons.append(reason)


def full_agent(**given):
    """An agent whose next request is over the threshold: with a summarizer at work, the first turn is the summary."""
    model = ScriptedModel(["One.", "Two."], context_window=1_000)
    said = [{"role": role, "content": [{"text": "word " * 100}]} for role in ("user", "assistant") * 20]
    return Agent(model=model, messages=said, context_manager="auto", callback_handler=None, **given)


@pytest.mark.parametrize("given", [{}, {"plugins": ["window"]}], ids=["", "with a window among the plugins"])
def test_whatever_plugin_is_given_as_the_conversation_manager_works_alone(given):
    manager = Mine()
    agent = full_agent(conversation_manager=manager, **given)

    assert str(agent("Go on.")) == "One.\n"
    assert len(agent.messages) == 42
    assert "before_model" in manager.reasons


def test_it_works_alone_in_copies_of_the_agent_and_when_plugins_are_added():
    agent = full_agent(conversation_manager=Mine())
    agent.add_plugin("limits")

    for each in (agent.clone(), agent):
        each("Go on.")
        assert len(each.messages) == 42


def test_a_context_plugin_beside_the_managers_does_not_stop_them():
    helper = Mine()
    agent = full_agent(plugins=[helper])

    assert str(agent("Go on.")) == "Two.\n"
    assert "One." in agent.messages[0]["content"][0]["text"]
    assert "before_model" in helper.reasons
