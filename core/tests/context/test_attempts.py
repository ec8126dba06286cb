"""Overflows of turns under way."""

from __future__ import annotations

import gc

from ropewalk.kits.context import Attempts


class Turn:
    """Stands for a run."""


def test_the_history_of_the_first_overflow_is_kept_while_later_ones_are_counted():
    attempts, run = Attempts(), Turn()
    assert attempts.note(run, [1, 2]).messages == (1, 2)
    again = attempts.note(run, [2])
    assert (again.messages, again.number) == ((1, 2), 2)
    assert len(attempts) == 1


def test_a_turn_that_is_over_is_forgotten():
    attempts, run = Attempts(), Turn()
    assert attempts.forget(run) is None
    first = attempts.note(run, [1])
    assert attempts.forget(run) is first
    assert attempts.note(run, [2]).number == 1


def test_another_cycle_of_the_run_is_another_turn():
    attempts, run = Attempts(), Turn()
    attempts.note(run, [1], 0)
    later = attempts.note(run, [1, 2], 1)
    assert (later.messages, later.number, len(attempts)) == ((1, 2), 1, 1)


def test_nothing_outlives_its_run():
    attempts, run = Attempts(), Turn()
    attempts.note(run, [1])
    del run
    gc.collect()
    assert len(attempts) == 0
