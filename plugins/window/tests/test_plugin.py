"""The default window, and what may stand in its place."""

from __future__ import annotations

import pytest

from ropewalk import Agent, ContextWindowOverflowException, ConversationManager
from ropewalk.errors import PluginError
from ropewalk_testing import PluginContract, ScriptedModel
from ropewalk_window import SlidingWindowConversationManager, WindowPlugin


def agent_of(turns, messages=(), **parameters):
    model = ScriptedModel(turns)
    return Agent(model=model, messages=list(messages), callback_handler=None, **parameters), model


def names(agent):
    return [plugin.name for plugin in agent.hooks.plugins]


class TestContract(PluginContract):
    plugin = WindowPlugin


def test_an_agent_has_a_window_of_forty_messages_unasked(chat):
    agent, _ = agent_of(["new"], chat(50))
    agent("more")
    assert len(agent.messages) == 40


def test_it_can_be_switched_off(chat):
    agent, _ = agent_of(["new"], chat(50), plugins=["-window"])
    agent("more")
    assert len(agent.messages) == 102


def test_options_set_the_window(chat):
    agent, _ = agent_of(["new"], chat(50), plugins=[("window", {"window_size": 6, "compression_threshold": 0.5})])
    agent("more")
    assert len(agent.messages) == 6
    assert next(p for p in agent.hooks.plugins if p.name == "window").compression_threshold == 0.5


@pytest.mark.parametrize(
    "options",
    [{"window_size": -1}, {"compression_threshold": 0}, {"compression_threshold": 1.1}, {"pin_first": -1}],
    ids=repr,
)
def test_an_option_out_of_range_is_refused(options):
    with pytest.raises(PluginError, match="window"):
        agent_of([], plugins=[("window", options)])


def test_a_manager_takes_the_place_of_the_default(chat):
    manager = SlidingWindowConversationManager(4)
    agent, _ = agent_of(["new"], chat(50), conversation_manager=manager)
    assert [plugin for plugin in agent.hooks.plugins if plugin.name == "window"] == [manager]
    agent("more")
    assert len(agent.messages) == 4


class Plain:
    """Has the two methods."""

    def __init__(self):
        self.calls = []

    def apply_management(self, agent):
        self.calls.append("apply")

    def reduce_context(self, agent, e=None):
        self.calls.append("reduce")
        raise e


def test_an_object_with_the_two_methods_is_used_and_the_default_gives_way(chat):
    manager = Plain()
    agent, _ = agent_of(["new", ContextWindowOverflowException("too long")], chat(50), conversation_manager=manager)
    agent("more")
    assert manager.calls == ["apply"]
    assert len(agent.messages) == 102
    with pytest.raises(ContextWindowOverflowException, match="too long"):
        agent("more")

    assert manager.calls == ["apply", "reduce"]


def test_the_default_gives_way_to_a_manager_among_the_plugins(chat):
    class Own(ConversationManager):
        def apply_management(self, agent, **kwargs):
            pass

        def reduce_context(self, agent, e=None, **kwargs):
            raise e

    agent, _ = agent_of(["new"], chat(50), plugins=[Own()])
    agent("more")
    assert names(agent).count("window") == 1
    assert len(agent.messages) == 102


@pytest.mark.parametrize(
    "value",
    ["sliding", 3, object(), SlidingWindowConversationManager, Plain],
    ids=["text", "number", "object", "class", "class without base"],
)
def test_what_is_no_manager_is_refused_with_what_to_give(value):
    with pytest.raises(ValueError, match="conversation_manager") as caught:
        agent_of([], conversation_manager=value)

    assert "SlidingWindowConversationManager" in str(caught.value)


class Untouchable:
    """A request whose conversation nobody may look at."""

    def __init__(self, length):
        self.ids = range(length)

    def __getattr__(self, name):
        raise AssertionError(f"looked at request.{name}")


@pytest.mark.parametrize("reason", ["before_model", "after_tools", "after_invocation"])
async def test_an_agent_that_reaches_no_bound_pays_for_a_comparison(reason):
    window = WindowPlugin()
    assert await window.manage_context(Untouchable(40), reason, None) is None


@pytest.mark.parametrize("reason", ["before_model", "after_tools"])
async def test_while_a_run_goes_on_it_may_be_longer_than_the_window_at_no_cost(reason):
    assert await WindowPlugin().manage_context(Untouchable(10_000), reason, None) is None


async def test_beyond_a_bound_the_conversation_is_looked_at():
    with pytest.raises(AttributeError):  # of the agent, which is None here
        await WindowPlugin().manage_context(Untouchable(41), "after_invocation", None)
