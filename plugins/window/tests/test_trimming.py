"""What goes, in messages and in tokens."""

from __future__ import annotations

import pytest

from ropewalk.kits.context import pinned_places
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk_window.trimming import cut, shorten, trimmed


@pytest.fixture
def kept(outline):
    def left(plan):
        return outline([message for message in plan if message is not None])

    return left


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, ""),
        (1, "q4 a4"),
        (2, "q4 a4"),
        (3, "q4 a4"),
        (4, "q0 a3 q4 a4"),
        (5, "q0 a3 q4 a4"),
        (6, "q0 a2 q3 a3 q4 a4"),
        (9, "q0 a1 q2 a2 q3 a3 q4 a4"),
        (10, "q0 a0 q1 a1 q2 a2 q3 a3 q4 a4"),
    ],
)
def test_of_a_chat_the_first_task_and_the_newest_exchanges_stay(chat, kept, size, expected):
    assert kept(trimmed(chat(5), size, set(), running=False)) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, "task done"),
        (2, "task done"),
        (3, "task done"),
        (4, "task [t7] r7 done"),
        (5, "task [t7] r7 done"),
        (6, "task [t6] r6 [t7] r7 done"),
    ],
)
def test_of_a_run_of_tools_the_task_and_whole_turns_stay(tool_run, kept, size, expected):
    assert kept(trimmed(tool_run(8), size, set(), running=False)) == expected


@pytest.mark.parametrize(("size", "expected"), [(0, "task [t7] r7"), (2, "task [t7] r7"), (5, "task [t6] r6 [t7] r7")])
def test_while_a_run_goes_on_its_newest_turn_stays(tool_run, kept, size, expected):
    assert kept(trimmed(tool_run(8, answer=False), size, set(), running=True)) == expected


@pytest.mark.parametrize(
    ("pins", "size", "expected"),
    [
        ({3}, 0, "task [t1] r1"),
        ({0}, 0, "task"),
        ({4}, 4, "task [t1] r1 done"),
        ({4}, 6, "task [t1] r1 [t7] r7 done"),
    ],
    ids=["call", "task", "results", "results and room"],
)
def test_pins_stay_with_their_whole_turn(tool_run, kept, pins, size, expected):
    messages = [
        {**message, "metadata": {"custom": {"pinned": True}}} if place in pins else message
        for place, message in enumerate(tool_run(8))
    ]
    assert kept(trimmed(messages, size, pinned_places(messages), running=False)) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (4, "q2 a3 q5 a5"),
        (6, "q0 a1 q2 a3 q5 a5"),
        (8, "q0 a1 q2 a3 q4 a4 q5 a5"),
        (11, "q0 a1 q2 a2 q3 a3 q4 a4 q5 a5"),
    ],
)
def test_pins_in_a_chat_keep_user_and_assistant_taking_turns(chat, kept, size, expected):
    assert kept(trimmed(chat(6), size, {4, 7}, running=False)) == expected


def test_a_thousand_pins_are_trimmed_around(chat):
    messages = chat(3_000)
    pins = set(range(0, 3_000, 3))
    plan = trimmed(messages, 2_500, pins, running=False)
    assert all(plan[place] is messages[place] for place in pins)
    assert sum(message is not None for message in plan) <= 2_500


def tokens(plan):
    return sum(message_tokens(message) for message in plan if message is not None)


@pytest.mark.parametrize("excess", [1, 10, 100, 300])
def test_a_cut_drops_the_oldest_until_enough_tokens_are_gone(tool_run, kept, excess):
    plan = tool_run(10, size=200)
    before = tokens(plan)
    left = cut(plan, excess, set())
    assert left <= 0
    assert before - tokens(plan) == excess - left
    assert kept(plan).startswith("task [t")
    assert kept(plan).endswith("[t9] r9" + " done")


def test_a_cut_that_can_drop_nothing_says_so(tool_run):
    plan = tool_run(1, answer=False)
    assert cut(plan, 50, set()) == 50
    assert None not in plan


def test_a_cut_takes_all_but_what_has_to_stay_and_at_last_the_first_task(chat, kept):
    plan = chat(5)
    left = cut(plan, 1_000, {2})
    assert kept(plan) == "q0 a0 q1 a3 q4 a4"
    assert cut(plan, left, {2}, task=False) > 0
    assert kept(plan) == "q1 a3 q4 a4"


@pytest.mark.parametrize(("excess", "short"), [(1, 1), (249, 2), (10_000, 4)])
def test_results_are_shortened_oldest_first_until_enough_is_gained(tool_run, excess, short):
    plan = tool_run(4, size=1_000)
    shorten(plan, excess, set())
    lengths = [len(plan[place]["content"][0]["toolResult"]["content"][0]["text"]) for place in (2, 4, 6, 8)]
    assert [length < 1_000 for length in lengths] == [True] * short + [False] * (4 - short)


def test_pinned_results_are_not_shortened(tool_run):
    plan = tool_run(2, size=1_000)
    messages = list(plan)
    shorten(plan, 10_000, {1, 2})
    assert plan[2] is messages[2]
    assert plan[4] is not messages[4]
