"""A budget by itself: what it allows, what it counts, for whom."""

from __future__ import annotations

import threading

import pytest

from ropewalk_limits import Budget, Spent


def test_what_is_added_is_counted_by_agent_and_in_all():
    budget = Budget(total_tokens=100)
    budget.add("a", Spent(turns=1, total_tokens=30, cost=0.5))
    budget.add("b", Spent(turns=2, total_tokens=20, tool_calls=1))
    budget.add("a", Spent(output_tokens=7))

    assert budget.spent == {
        "a": Spent(turns=1, total_tokens=30, output_tokens=7, cost=0.5),
        "b": Spent(turns=2, total_tokens=20, tool_calls=1),
    }
    assert budget.total == Spent(turns=3, total_tokens=50, output_tokens=7, tool_calls=1, cost=0.5)


def test_a_limit_is_reached_when_as_much_is_spent():
    budget = Budget(total_tokens=100, turns=2)
    assert budget.reached is None
    budget.add("a", Spent(total_tokens=99))
    assert budget.reached is None
    budget.add("a", Spent(total_tokens=1))
    assert budget.reached == "total_tokens"
    budget.add("a", Spent(turns=2))
    assert budget.reached == "turns"


def test_a_budget_without_limits_only_counts():
    budget = Budget()
    budget.add("a", Spent(turns=10**6))
    assert (budget.reached, budget.take_turn("a")) == (None, True)


def test_seconds_in_which_several_calls_run_count_once(clock):
    budget = Budget(seconds=10)
    with budget:
        clock.now += 2
        with budget:
            clock.now += 3
        assert budget.total.seconds == 5
        clock.now += 1

    clock.now += 100
    assert budget.total.seconds == 6
    with budget:
        clock.now += 4
        assert budget.reached == "seconds"


@pytest.mark.parametrize("limits", [{"turns": 0}, {"turns": True}, {"cost": -1}, {"size": 1}], ids=str)
def test_limits_that_are_none_are_refused(limits):
    with pytest.raises(TypeError, match=r"^Budget: "):
        Budget(**limits)


def test_its_limits_cannot_be_changed():
    budget = Budget(turns=1)
    with pytest.raises(TypeError):
        budget.limits["turns"] = 2


def test_its_text_says_what_is_spent_of_what():
    budget = Budget(turns=5, cost=2.5)
    budget.add("a", Spent(turns=2, cost=0.25))
    assert repr(budget) == "<Budget: turns 2 of 5, cost 0.25 of 2.5>"
    assert repr(Budget()) == "<Budget: no limits>"


def test_many_threads_spend_no_more_turns_than_there_are():
    budget = Budget(turns=500)
    taken = []

    def take():
        for _ in range(200):
            if budget.take_turn("a"):
                taken.append(1)
            budget.add("b", Spent(total_tokens=3))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 500
    assert budget.spent == {"a": Spent(turns=500), "b": Spent(total_tokens=4800)}


def test_what_is_spent_is_json():
    assert Spent(turns=1).to_dict() == {
        "turns": 1, "output_tokens": 0, "total_tokens": 0, "seconds": 0.0, "tool_calls": 0, "cost": 0.0,
    }  # fmt: skip
