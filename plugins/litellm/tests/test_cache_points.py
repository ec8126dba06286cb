"""Cache points become marks, in legal places and four at most (scenario A24)."""

from __future__ import annotations

import copy

import pytest

from ropewalk_litellm.cache_points import SYSTEM, TOOLS, marks_of

POINT = {"cachePoint": {"type": "default"}}
MARK = {"type": "ephemeral"}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}}


def user(*blocks):
    return {"role": "user", "content": [{"text": b} if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks):
    return {**user(*blocks), "role": "assistant"}


def places(messages, system=(), tools=False, auto=None):
    return set(marks_of(system, messages, tools=tools, auto=auto).places)


def test_a_point_marks_what_stands_before_it():
    assert places([user("a", POINT, "b")]) == {(0, 0)}


@pytest.mark.parametrize(
    "message",
    [user(POINT, "a"), assistant(THOUGHT, POINT), assistant("a", THOUGHT, POINT)],
    ids=["first", "after thinking", "after text and thinking"],
)
def test_a_point_first_or_after_thinking_marks_nothing(message):
    assert places([message]) == set()


def test_two_points_in_a_row_are_one():
    assert places([user("a", POINT, POINT)]) == {(0, 0)}


LONG = [m for n in range(6) for m in (user(f"q{n}", POINT), assistant("a", THOUGHT))][:-1]


def test_of_many_points_the_last_turns_the_systems_and_the_newest_stay():
    assert places(LONG, system=[{"text": "s"}, POINT]) == {(10, 0), (SYSTEM, 0), (8, 0), (6, 0)}


def test_points_are_set_where_the_caller_set_none():
    messages = [user("q"), assistant("a"), user("r", "s")]

    assert places(messages, system=[{"text": "s"}], tools=True, auto={}) == {(TOOLS, 0), (SYSTEM, 0), (2, 1)}


def test_nothing_is_marked_after_the_callers_point_in_the_last_turn():
    messages = [user("q"), assistant("a"), user("long text", POINT, "the time is 12:01")]

    assert places(messages, auto={}) == {(2, 0)}


def test_four_is_the_most_with_automatic_points_too():
    found = places(LONG, system=[{"text": "s"}], tools=True, auto={})

    assert found == {(10, 0), (TOOLS, 0), (SYSTEM, 0), (8, 0)}


def test_the_time_to_live_is_kept():
    marks = marks_of((), [user("a", {"cachePoint": {"type": "default", "ttl": "1h"}})], tools=False, auto=None)

    assert marks.at(0, 0) == {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert marks.at(0, 1) == {}


def test_the_callers_messages_are_not_written_to():
    before = copy.deepcopy(LONG)

    marks_of([{"text": "s"}], LONG, tools=True, auto={})

    assert before == LONG
