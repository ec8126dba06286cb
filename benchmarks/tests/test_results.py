"""Ratios, bars and tables, on numbers that are given."""

from __future__ import annotations

import pytest
from harness import plan
from harness.bars import BARS, all_kept, measured, verdict
from harness.results import Results
from harness.tables import bars_table, report, time_text


def bar_of(label):
    return next(bar for bar in BARS if bar.label == label)


@pytest.fixture
def results():
    return Results()


def test_a_ratio_is_taken_within_a_round_and_then_the_median(results):
    for ours, theirs in ((10.0, 1.0), (30.0, 10.0), (40.0, 8.0)):
        results.add("c", "ropewalk", {"cpu_us": ours})
        results.add("c", "floor", {"cpu_us": theirs})

    assert results.ratio(("c", "ropewalk"), ("c", "floor"), "cpu_us") == 5.0
    assert results.value("c", "ropewalk", "cpu_us") == 30.0


def test_a_round_that_failed_is_left_out_of_the_ratio_on_both_sides(results):
    for ours, theirs in (({"error": "no"}, 1.0), ({"cpu_us": 6.0}, 2.0)):
        results.add("c", "ropewalk", ours)
        results.add("c", "floor", {"cpu_us": theirs})

    assert results.ratio(("c", "ropewalk"), ("c", "floor"), "cpu_us") == 3.0
    assert results.failed == ["c / ropewalk: error: no"]


def test_nothing_measured_is_no_ratio(results):
    assert results.ratio(("c", "ropewalk"), ("c", "floor"), "cpu_us") is None
    assert results.value("c", "floor", "cpu_us") is None


@pytest.mark.parametrize(("value", "expected"), [(9.9, "met"), (10.0, "met"), (10.01, "missed")])
def test_a_bar_has_no_tolerance(results, value, expected):
    results.add(plan.CYCLE_10, "ropewalk", {"cpu_us": value})
    results.add(plan.CYCLE_10, "floor", {"cpu_us": 1.0})
    assert verdict(bar_of(plan.CYCLE_10), results) == expected
    assert all_kept(results) == (expected == "met")


def test_a_bar_may_compare_two_cases_of_ropewalk(results):
    results.add(plan.AFTER_12, "ropewalk", {"cpu_us": 20.0})
    results.add(plan.AFTER_5000, "ropewalk", {"cpu_us": 32.0})
    assert measured(bar_of(plan.AFTER_5000), results) == 1.6
    assert verdict(bar_of(plan.AFTER_5000), results) == "missed"


def test_an_absolute_bar_needs_no_floor(results):
    results.add(plan.MEMORY_1, "ropewalk", {"traced_kib_per_agent": 3.0})
    assert verdict(bar_of(plan.MEMORY_1), results) == "met"


def test_a_bar_of_a_case_that_failed_is_not_kept(results):
    results.add(plan.CYCLE_10, "ropewalk", {"error": "no"})
    results.add(plan.CYCLE_10, "floor", {"cpu_us": 1.0})
    assert verdict(bar_of(plan.CYCLE_10), results) == "failed"
    assert not all_kept(results)


def test_a_bar_of_a_case_that_was_not_asked_for_does_not_count(results):
    assert verdict(bar_of(plan.CYCLE_10), results) == "not run"
    assert all_kept(results)


def test_every_bar_is_about_a_planned_case():
    labels = {case.label for case in plan.PLAN}
    assert {bar.label for bar in BARS} <= labels
    assert {bar.against for bar in BARS} - {"floor", "absolute"} <= labels


def test_the_report_shows_values_ratios_and_what_was_left_out(results):
    results.add(plan.CYCLE_10, "ropewalk", {"cpu_us": 30.0, "wall_us": 40.0})
    results.add(plan.CYCLE_10, "floor", {"cpu_us": 6.0, "wall_us": 10.0})
    results.add("turns with a store", "ropewalk", {"skip": "no store yet"})
    text = report(results, ["ropewalk", "floor"], {"ropewalk": "0.1.0", "floor": None})
    assert "ropewalk 0.1.0" in text
    assert "| cycle, N=10: cpu | 30 us (5.00x) | 6 us |" in text
    assert "- turns with a store / ropewalk: skip: no store yet" in text
    assert "| cycle, N=10, CPU / floor | 5.00x | 10x | 5x | met |" in bars_table(results)


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0.25, "0.250 us"), (6.25, "6.25 us"), (1500.0, "1.5 ms"), (2.5e6, "2.5 s")]
)
def test_a_duration_has_a_fitting_unit(microseconds, text):
    assert time_text(microseconds) == text
