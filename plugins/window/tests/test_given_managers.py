"""Managers that users write, in agents."""

from __future__ import annotations

import logging

import pytest

from ropewalk import Agent, ContextWindowOverflowException, hookimpl
from ropewalk.kits.context import ConversationManager, GivenManager, is_manager, steps_aside
from ropewalk_testing import ScriptedModel, assert_valid_history, turn

LONG = ContextWindowOverflowException("too long")


class Noting(ConversationManager):
    """Notes its calls and drops the oldest exchange."""

    name = "noting"

    def __init__(self, **given):
        super().__init__(**given)
        self.calls = []

    def apply_management(self, agent, **kwargs):
        self.calls.append("apply")

    def reduce_context(self, agent, e=None, **kwargs):
        self.calls.append(e)
        if len(agent.messages) < 3:
            raise e or RuntimeError("nothing to drop")

        del agent.messages[:2]


class Records:
    """Keeps what would be stored."""

    name = "records"

    def __init__(self):
        self.splices = []

    @hookimpl
    async def write_records(self, records):
        self.splices += [record.data for record in records if record.kind == "history_spliced"]


def chat(count):
    return [
        {"role": "assistant" if place % 2 else "user", "content": [{"text": f"m{place}"}]} for place in range(count)
    ]


def agent_of(manager, turns, messages=(), *plugins, **given):
    model = ScriptedModel(turns, **given)
    agent = Agent(
        model=model,
        messages=list(messages),
        callback_handler=None,
        conversation_manager=manager,
        plugins=["-retry", *plugins],
    )
    return agent, model


def test_apply_is_called_at_the_end_of_each_invocation():
    manager = Noting()
    agent, _ = agent_of(manager, ["a", "b"])
    agent("one")
    agent("two")
    assert manager.calls == ["apply", "apply"]


def test_an_overflow_is_reduced_in_place_recorded_in_the_managers_name_and_the_turn_goes_on():
    manager, records = Noting(), Records()
    agent, model = agent_of(manager, [LONG, "fits"], chat(4), records)
    assert str(agent("go")) == "fits\n"
    assert manager.calls == [LONG, "apply"]
    assert [m["content"] for m in model.requests[1].messages] == [[{"text": t}] for t in ("m2", "m3", "go")]
    assert [(s["plugin"], s["at"]) for s in records.splices] == [("noting", 0)]
    assert_valid_history(agent.messages)


def test_what_a_manager_leaves_invalid_is_repaired():
    class Clumsy(Noting):
        def apply_management(self, agent, **kwargs):
            del agent.messages[1]

    agent, _ = agent_of(Clumsy(), ["a"], chat(4))
    agent("go")
    assert_valid_history(agent.messages)
    assert agent.messages[0]["content"] == [{"text": "m0"}, {"text": "m2"}]


def test_a_manager_that_gives_up_raises_its_error_and_the_history_is_put_back():
    agent, model = agent_of(Noting(), [LONG] * 4, chat(6))
    before = list(agent.messages)
    with pytest.raises(ContextWindowOverflowException, match="too long"):
        agent("go")

    assert model.calls == 4
    assert agent.messages[:6] == before
    model.add("better")
    assert str(agent("again")) == "better\n"
    assert_valid_history(agent.messages)


def test_another_error_of_a_manager_goes_to_the_caller_without_the_edits_of_that_call():
    class Broken(Noting):
        def reduce_context(self, agent, e=None, **kwargs):
            del agent.messages[:2]
            raise KeyError("a fault")

    records = Records()
    agent, _ = agent_of(Broken(), [LONG], chat(4), records)
    with pytest.raises(KeyError, match="a fault"):
        agent("go")

    assert agent.messages[:4] == chat(4)
    assert agent.messages.before_edit is None
    assert records.splices[0]["plugin"] != "caller"


def test_an_error_of_its_own_says_why_beside_the_providers():
    class Explaining(Noting):
        def reduce_context(self, agent, e=None, **kwargs):
            raise ContextWindowOverflowException("all of it is pinned") from e

    agent, _ = agent_of(Explaining(), [ContextWindowOverflowException("too long")], chat(4))
    with pytest.raises(ContextWindowOverflowException, match="too long") as caught:
        agent("go")

    assert "noting: all of it is pinned" in caught.value.__notes__
    assert agent.messages == chat(4)


def test_a_reduction_before_an_overflow_that_fails_half_way_is_taken_back():
    class Broken(Noting):
        def reduce_context(self, agent, e=None, **kwargs):
            del agent.messages[:2]
            raise KeyError("a fault")

    agent, model = agent_of(Broken(proactive_compression=True), ["a"], chat(4), context_window=1)
    agent("go")
    assert len(model.requests[0].messages) == 5


def test_an_async_manager_is_awaited():
    class Slow(Noting):
        async def apply_management(self, agent, **kwargs):
            self.calls.append("awaited")

        async def reduce_context(self, agent, e=None, **kwargs):
            del agent.messages[:2]

    manager = Slow()
    agent, _ = agent_of(manager, [LONG, "fits"], chat(4))
    agent("go")
    assert manager.calls == ["awaited"]
    assert len(agent.messages) == 4


@pytest.mark.parametrize(("used", "reduced"), [(600, False), (900, True)])
def test_the_threshold_has_the_context_reduced_before_the_call(used, reduced):
    manager = Noting(proactive_compression=True)
    agent, model = agent_of(manager, [turn("a", usage=(used, 1)), "b"], chat(2), context_window=1_000)
    agent("one")
    agent("two")
    assert (None in manager.calls) is reduced
    assert len(model.requests[1].messages) == (3 if reduced else 5)


def test_a_reduction_that_fails_before_an_overflow_is_logged_and_the_call_goes_on(caplog):
    manager = Noting(proactive_compression={"compression_threshold": 0.1})
    agent, _ = agent_of(manager, ["answer"], context_window=10)
    with caplog.at_level(logging.ERROR, "ropewalk.context"):
        assert str(agent("a prompt that is long enough")) == "answer\n"

    assert "noting could not compress" in caplog.text


def test_what_a_manager_remembers_belongs_to_the_agent():
    manager = Noting()
    one, two = agent_of(manager, ["a"])[0], agent_of(manager, ["a"])[0]
    manager.state(one).set("removed", 3)
    assert manager.state(one).get("removed") == 3
    assert manager.state(two).get("removed") is None
    assert one.take_snapshot(preset="session").data["plugin_state"]["noting"] == {"removed": 3}


class Plain:
    """Has the two methods and no base."""

    def apply_management(self, agent):
        del agent.messages[:-2]

    def reduce_context(self, agent, e=None):
        raise e


def test_any_object_with_the_two_methods_becomes_a_plugin():
    manager = GivenManager(Plain())
    agent, _ = agent_of(manager, ["a"], chat(4))
    agent("go")
    assert [m["content"] for m in agent.messages] == [[{"text": "go"}], [{"text": "a"}]]
    assert "Plain" in repr(manager)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Plain(), True), (Plain, False), (Noting(), True), (3, False), ("auto", False)],
    ids=["object", "class", "manager", "number", "text"],
)
def test_a_manager_is_known_by_its_methods(value, expected):
    assert is_manager(value) is expected


def test_a_manager_steps_aside_for_another_one():
    mine = Noting()
    agent, _ = agent_of(mine, [])
    assert not steps_aside(agent, mine)
    assert steps_aside(agent, Noting())
