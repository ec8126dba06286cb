"""The window in agents."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import ContextWindowOverflowException, ModelThrottledException, tool
from ropewalk_testing import assert_valid_history, turn, use
from ropewalk_window import NullConversationManager, SlidingWindowConversationManager

LONG = ContextWindowOverflowException("too long")


@tool
async def look(size: int) -> str:
    """Looks.

    Args:
        size: Characters.
    """
    return "x" * size


def overflow():
    return ContextWindowOverflowException("too long")


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"window_size": -1}, "window_size=-1"),
        ({"window_size": "40"}, "window_size='40'"),
        ({"window_size": True}, "window_size=True"),
        ({"per_turn": 0}, "per_turn=0"),
        ({"per_turn": -2}, "per_turn=-2"),
        ({"per_turn": "always"}, "per_turn='always'"),
        ({"pin_first": -1}, "pin_first=-1"),
        ({"proactive_compression": {"compression_threshold": 0}}, "proactive_compression="),
        ({"proactive_compression": 1.5}, "proactive_compression=1.5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_of_another_kind_is_refused_by_name(values, named):
    with pytest.raises(ValueError, match="SlidingWindowConversationManager") as caught:
        SlidingWindowConversationManager(**values)

    assert named in str(caught.value)


def test_the_defaults_are_forty_messages_at_the_end_of_an_invocation():
    manager = SlidingWindowConversationManager()
    assert (manager.window_size, manager.should_truncate_results, manager.per_turn) == (40, True, False)
    assert (manager.pin_first, manager.compression_threshold) == (None, None)
    assert SlidingWindowConversationManager(5, False).window_size == 5


# -- the window --------------------------------------------------------------------------------------------------------


def test_the_history_is_trimmed_at_the_end_and_whole_in_the_requests(make_agent, chat, outline, records):
    agent, model = make_agent(SlidingWindowConversationManager(4), ["new"], chat(5))
    agent("more")
    assert outline(model.requests[0].messages) == "q0 a0 q1 a1 q2 a2 q3 a3 q4 a4 more"
    assert outline(agent.messages) == "q0 a4 more new"
    assert [(s["plugin"], s["at"], s["gone"], s["messages"]) for s in records.splices] == [("window", 1, 8, [])]
    assert "the window holds 4 messages" in records.splices[0]["reason"]


def test_what_stays_keeps_its_ids(make_agent, chat):
    agent, _ = make_agent(SlidingWindowConversationManager(4), ["new"], chat(5))
    agent("more")
    assert agent.history.ids == [0, 9, 10, 11]


@pytest.mark.parametrize(
    ("per_turn", "seen"),
    [
        (False, [1, 3, 5, 7, 9, 11]),
        (True, [1, 3, 3, 3, 3, 3]),
        (2, [1, 3, 5, 3, 5, 3]),
        (3, [1, 3, 3, 5, 7, 3]),
    ],
    ids=str,
)
def test_the_window_is_applied_before_model_calls_when_asked(make_agent, per_turn, seen):
    manager = SlidingWindowConversationManager(3, per_turn=per_turn)
    agent, model = make_agent(manager, [*[use("look", {"size": 1})] * 5, "done"], tools=[look])
    agent("task")
    assert [len(request.messages) for request in model.requests] == seen
    for request in model.requests:
        assert_valid_history(request.messages)
        assert request.messages[0]["content"] == [{"text": "task"}]


def test_a_window_of_nothing_leaves_the_newest_turn_to_a_run_and_nothing_behind(make_agent, chat, outline):
    agent, model = make_agent(
        SlidingWindowConversationManager(0, per_turn=True),
        [use("look", {"size": 1}, id="t"), "done"],
        chat(3),
        (),
        [look],
    )
    assert str(agent("task")) == "done\n"
    assert [outline(request.messages) for request in model.requests] == ["task", "task [t] x"]
    assert agent.messages == []
    model.add("again")
    assert str(agent("next")) == "again\n"


def test_the_first_messages_are_pinned_when_asked(make_agent, chat, outline):
    agent, _ = make_agent(SlidingWindowConversationManager(6, pin_first=3), ["new"], chat(5))
    agent("more")
    assert outline(agent.messages) == "q0 a0 q1 a4 more new"


def test_one_manager_serves_many_agents_at_once(make_agent, chat, outline):
    manager = SlidingWindowConversationManager(4)
    agents = [make_agent(manager, ["new"], chat(count))[0] for count in (1, 3, 8)]

    async def all_of_them():
        await asyncio.gather(*[agent.invoke_async("more") for agent in agents])

    asyncio.run(all_of_them())
    assert [outline(agent.messages) for agent in agents] == ["q0 a0 more new", "q0 a2 more new", "q0 a7 more new"]


def test_by_hand_the_list_is_trimmed_between_runs(make_agent, chat, outline):
    manager = SlidingWindowConversationManager(4)
    agent, _ = make_agent(manager, ["new"], chat(5))
    manager.apply_management(agent)
    assert outline(agent.messages) == "q0 a3 q4 a4"


def test_a_subclass_with_methods_of_its_own_has_them_called(make_agent, chat):
    class LastTwo(SlidingWindowConversationManager):
        def apply_management(self, agent, **kwargs):
            del agent.messages[:-2]

    agent, model = make_agent(LastTwo(per_turn=True), ["new"], chat(5))
    agent("more")
    assert len(model.requests[0].messages) == 2 + 1  # the answer before it, behind a stand-in for the user
    assert [m["content"] for m in agent.messages] == [[{"text": "more"}], [{"text": "new"}]]


def test_a_subclass_that_has_nothing_to_trim_is_asked_to_reduce_at_the_threshold(make_agent, chat):
    class Reducing(SlidingWindowConversationManager):
        def reduce_context(self, agent, e=None, **kwargs):
            del agent.messages[:-3]

    manager = Reducing(per_turn=True, proactive_compression=True)
    agent, model = make_agent(manager, ["new"], chat(5), context_window=10)
    agent("more")
    assert len(model.requests[0].messages) == 3


# -- overflow ----------------------------------------------------------------------------------------------------------


def lengths(messages):
    return [
        len(block["toolResult"]["content"][0]["text"])
        for m in messages
        for block in m["content"]
        if "toolResult" in block
    ]


def test_after_an_overflow_the_oldest_results_are_shortened_first(make_agent, tool_run, records):
    agent, model = make_agent(SlidingWindowConversationManager(), [overflow(), "fits"], tool_run(8, size=4_000))
    assert str(agent("more")) == "fits\n"
    assert len(model.requests[1].messages) == len(model.requests[0].messages)
    assert lengths(model.requests[1].messages) == [439] * 3 + [4_000] * 5
    assert [s["reason"] for s in records.splices] == ["the request did not fit, reduction 1"]


def test_results_are_left_alone_when_asked_and_turns_go(make_agent, tool_run, outline):
    manager = SlidingWindowConversationManager(should_truncate_results=False)
    agent, model = make_agent(manager, [overflow(), "fits"], tool_run(8, size=4_000))
    agent("more")
    assert set(lengths(model.requests[1].messages)) == {4_000}
    assert outline(model.requests[1].messages).startswith("task [t3] r3")


def test_short_results_leave_only_turns_to_go(make_agent, tool_run):
    agent, model = make_agent(SlidingWindowConversationManager(), [overflow(), "fits"], tool_run(8))
    agent("more")
    assert len(model.requests[1].messages) < len(model.requests[0].messages)
    assert_valid_history(model.requests[1].messages)


def test_a_known_window_is_met_at_once(make_agent, tool_run):
    agent, model = make_agent(
        SlidingWindowConversationManager(), [overflow(), "fits"], tool_run(30, size=40_000), context_window=8_000
    )
    agent("more")
    assert sum(lengths(model.requests[1].messages)) / 4 < 8_000


def test_pins_are_neither_shortened_nor_dropped(make_agent, tool_run):
    messages = tool_run(8, size=4_000)
    messages[2]["metadata"] = {"custom": {"pinned": True}}
    agent, model = make_agent(SlidingWindowConversationManager(), [*[overflow()] * 3, "fits"], messages)
    agent("more")
    assert model.requests[-1].messages[1:3] == messages[1:3]


def test_a_turn_that_never_fits_ends_in_the_error_after_four_reductions_and_does_no_harm(make_agent, tool_run, records):
    agent, model = make_agent(
        SlidingWindowConversationManager(), [LONG] * 9, tool_run(30, size=4_000), context_window=1_000_000
    )
    before = list(agent.messages)
    with pytest.raises(ContextWindowOverflowException, match="too long") as caught:
        agent("more")

    assert 3 <= model.calls <= 5
    assert agent.messages[: len(before)] == before
    assert any("have to stay; the largest is number" in note for note in caught.value.__notes__)
    assert any("window 1000000" in note for note in caught.value.__notes__)
    assert records.splices[-2]["reason"] == "no reduction helped: as it was before"
    assert agent.messages == before
    assert_valid_history(agent.messages)


def test_a_message_that_alone_exceeds_the_window_is_named_with_its_size(make_agent):
    agent, model = make_agent(SlidingWindowConversationManager(), [overflow()], context_window=1_000)
    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("x" * 40_000)

    assert model.calls == 1
    assert any("number 0, of the user, with about 10000 tokens" in note for note in caught.value.__notes__)
    assert agent.messages == []


def test_an_agent_goes_on_after_a_turn_that_did_not_fit(make_agent, tool_run):
    agent, model = make_agent(SlidingWindowConversationManager(), [LONG] * 5, tool_run(8, size=4_000))
    with pytest.raises(ContextWindowOverflowException):
        agent("more")

    del model._queue[model.calls :]
    model.add(overflow(), "fits")
    assert str(agent("less")) == "fits\n"


def test_each_turn_has_reductions_of_its_own(make_agent):
    answers = [turn(use("look", {"size": 3_000}, id=f"t{i}"), usage=None) for i in range(12)]
    turns = [each for answer in answers for each in (overflow(), answer)]
    agent, model = make_agent(
        SlidingWindowConversationManager(), [turn("first", usage=None), *turns, "done"], tools=[look]
    )
    agent("task " + "x" * 400)
    assert str(agent("go")) == "done\n"
    assert model.calls == 1 + 24 + 1


def test_other_errors_are_none_of_the_windows(make_agent, chat):
    agent, _ = make_agent(
        SlidingWindowConversationManager(2), [ModelThrottledException("slower")], chat(5), ("-retry",)
    )
    with pytest.raises(ModelThrottledException):
        agent("more")

    assert len(agent.messages) == 10


# -- compression before an overflow ------------------------------------------------------------------------------------


def test_the_threshold_has_the_oldest_turns_go_before_the_call(make_agent, tool_run, records, outline):
    manager = SlidingWindowConversationManager(proactive_compression=True)
    agent, model = make_agent(manager, ["fits"], tool_run(10, size=400), context_window=1_500)
    agent("more")
    assert outline(model.requests[0].messages).startswith("task [t")
    assert len(model.requests[0].messages) < 20
    assert "reached 70% of the model's window" in records.splices[0]["reason"]


def test_one_giant_result_is_shortened_when_no_turn_is_left_to_go(make_agent):
    manager = SlidingWindowConversationManager(proactive_compression=True)
    agent, model = make_agent(manager, [use("look", {"size": 200_000}), "done"], tools=[look], context_window=8_000)
    assert str(agent("task")) == "done\n"
    assert lengths(model.requests[1].messages) < [500]


def test_compression_leaves_room_so_that_it_is_not_due_every_turn(make_agent, records):
    manager = SlidingWindowConversationManager(10_000, proactive_compression=True)
    turns = [turn(use("look", {"size": 400}, id=f"t{i}"), usage=None) for i in range(60)]
    agent, _ = make_agent(manager, [*turns, "done"], tools=[look], context_window=3_000)
    agent("task")
    assert 2 <= len(records.splices) <= 20


def test_below_the_threshold_nothing_happens(make_agent, tool_run, records):
    manager = SlidingWindowConversationManager(proactive_compression={"compression_threshold": 1.0})
    agent, _ = make_agent(manager, ["fits"], tool_run(10, size=400), context_window=50_000)
    agent("more")
    assert records.splices == []


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_reducing_by_hand_shortens_after_an_overflow_and_cuts_without_one(make_agent, tool_run):
    manager = SlidingWindowConversationManager()
    agent, _ = make_agent(manager, [], tool_run(8, size=4_000))
    manager.reduce_context(agent, LONG)
    assert lengths(agent.messages) == [439] * 3 + [4_000] * 5
    manager.reduce_context(agent)
    assert len(agent.messages) < 18


def test_reducing_by_hand_what_has_to_stay_raises_after_an_overflow_and_warns_without_one(make_agent, chat, caplog):
    manager = SlidingWindowConversationManager()
    agent, _ = make_agent(manager, [], chat(1))
    with pytest.raises(ContextWindowOverflowException, match="cannot be made smaller: 2 messages") as caught:
        manager.reduce_context(agent, LONG)

    assert caught.value.__cause__ is LONG
    manager.reduce_context(agent)
    assert "cannot be made smaller" in caplog.text
    assert agent.messages == chat(1)


# -- no window ---------------------------------------------------------------------------------------------------------


def test_without_a_manager_the_overflow_goes_to_the_caller_at_once(make_agent, chat):
    agent, model = make_agent(NullConversationManager(), [LONG, "fits"], chat(50))
    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("more")

    assert caught.value is LONG
    assert model.calls == 1
    assert agent.messages[:100] == chat(50)


def test_without_a_manager_nothing_is_trimmed(make_agent, chat):
    agent, _ = make_agent(NullConversationManager(), ["new"], chat(50))
    agent("more")
    assert len(agent.messages) == 102


def test_reducing_by_hand_without_a_manager_says_that_nothing_does(make_agent):
    agent, _ = make_agent(NullConversationManager(), [])
    with pytest.raises(ContextWindowOverflowException, match="give another conversation_manager"):
        NullConversationManager().reduce_context(agent)
