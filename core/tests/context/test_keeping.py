"""Which messages can be kept together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.context import closed, first_task, newest_turn, next_cut

USER = {"role": "user", "content": [{"text": "words"}]}
ANSWER = {"role": "assistant", "content": [{"text": "answer"}]}
CALL = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]}
RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "status": "success", "content": []}}]}
RESULT_AND_WORDS = {"role": "user", "content": [*RESULT["content"], {"text": "and this"}]}
CHAT = [USER, ANSWER] * 4
TOOLS = [USER, *[CALL, RESULT] * 3, ANSWER]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [([], None), (CHAT, 0), ([ANSWER, USER], 1), ([CALL, RESULT, ANSWER], None), ([CALL, RESULT, ANSWER, USER], 3)],
)
def test_the_first_task_is_the_first_message_of_the_user_without_results(messages, expected):
    assert first_task(messages) == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], set()),
        ([USER], {0}),
        (CHAT, {6, 7}),
        (TOOLS, {0, 7}),
        (TOOLS[:-1], {0, 5, 6}),
        ([*CHAT, USER], {8}),
        ([USER, CALL, RESULT_AND_WORDS, ANSWER], {0, 1, 2, 3}),
    ],
)
def test_the_newest_turn_is_the_last_message_with_what_it_needs(messages, expected):
    assert newest_turn(messages) == expected


@pytest.mark.parametrize(("at", "expected"), [(-3, 0), (0, 0), (1, 1), (2, 3), (3, 3), (4, 5), (7, 7), (99, 8)])
def test_a_cut_never_falls_between_a_call_and_its_results(at, expected):
    assert next_cut(TOOLS, at) == expected


@pytest.mark.parametrize(
    ("messages", "places", "expected"),
    [
        (TOOLS, {2}, {0, 1, 2}),
        (TOOLS, {3}, {0, 3, 4}),
        (TOOLS, {0, 7}, {0, 7}),
        (CHAT, {0, 4}, {0, 3, 4}),
        (CHAT, {0, 1, 5}, {0, 1, 2, 5}),
        (CHAT, {5}, {0, 5}),
        ([CALL, RESULT, ANSWER], {2}, {2}),
        (TOOLS, set(), set()),
    ],
    ids=["results", "call", "alternates", "two user", "two assistant", "assistant first", "no task", "none"],
)
def test_what_is_kept_is_completed_by_as_few_as_it_takes(messages, places, expected):
    assert closed(messages, places) == expected


@st.composite
def histories(draw):
    """A valid history with a user message first."""
    messages = []
    for index in range(draw(st.integers(1, 12))):
        messages.append(USER)
        for turn in range(draw(st.integers(0, 3))):
            name = f"t{index}-{turn}"
            messages.append({"role": "assistant", "content": [{"toolUse": {"toolUseId": name, "name": "look"}}]})
            messages.append({"role": "user", "content": [{"toolResult": {"toolUseId": name, "content": []}}]})

        messages.append(ANSWER)

    return messages[: draw(st.integers(1, len(messages)))]


@given(histories(), st.data())
def test_what_is_kept_of_a_valid_history_is_one(messages, data):
    places = data.draw(st.sets(st.integers(0, len(messages) - 1), min_size=1))

    kept = closed(messages, places)

    left = [messages[place] for place in sorted(kept)]
    assert places <= kept
    assert [m["role"] for m in left] == ["user", "assistant"] * (len(left) // 2) + ["user"] * (len(left) % 2)
    for place in kept:
        results = [b for b in messages[place]["content"] if "toolResult" in b]
        uses = [b for b in messages[place]["content"] if "toolUse" in b]
        assert not results or place - 1 in kept
        assert not uses or place + 1 in kept or place + 1 == len(messages)
    assert closed(messages, kept) == kept
