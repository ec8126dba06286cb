"""From a wish to an edit of the history, for any history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.context import is_pinned, newest_turn, pinned_as, pinned_places
from ropewalk.kits.messages.history import History
from ropewalk_context_agentic.carrying_out import carried_out, edits_between
from ropewalk_context_agentic.wishes import TYPES, Wish, WishError
from ropewalk_testing import assert_valid_history


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def turn_of(number, parallel):
    uses = [{"toolUse": {"toolUseId": f"{number}-{i}", "name": "look", "input": {}}} for i in range(parallel)]
    results = [
        {"toolResult": {"toolUseId": f"{number}-{i}", "status": "success", "content": [{"text": "seen " * 80}]}}
        for i in range(parallel)
    ]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


@st.composite
def histories(draw):
    """Any valid history that ends in a turn of tools, some messages of it pinned."""
    messages = [user("task")]
    for number in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            messages += [{"role": "assistant", "content": [{"text": "w" * draw(st.integers(1, 600))}]}, user("prompt")]
        else:
            messages += turn_of(number, draw(st.integers(1, 2)))

    messages += turn_of(99, 1)
    pins = draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    return [pinned_as(m) if i in pins else m for i, m in enumerate(messages)]


wishes = st.one_of(
    st.builds(
        Wish,
        kind=st.just("summarize"),
        reference=st.just("ctx_1"),
        keep_recent=st.integers(0, 12),
        ratio=st.one_of(st.none(), st.floats(0.1, 1)),
        message_type=st.sampled_from(TYPES[:2]),
    ),
    st.builds(
        Wish,
        kind=st.just("truncate"),
        reference=st.just("ctx_2"),
        keep_recent=st.integers(0, 12),
        message_type=st.sampled_from(TYPES),
    ),
    st.builds(
        Wish,
        kind=st.just("pin"),
        select=st.one_of(st.just("last_turn"), st.integers(1, 9), st.lists(st.integers(0, 20), min_size=1)),
        pin=st.booleans(),
    ),
)


async def summarize(folding):
    assert folding.material
    return "short"


@given(histories(), st.lists(wishes, min_size=1, max_size=3))
async def test_any_wish_leaves_a_valid_history_with_its_pins_and_newest_turn(messages, wished):
    history = History(messages)
    before = list(history.messages)
    now = before
    for wish in wished:
        kept = pinned_places(now) | newest_turn(now)
        blocks = [block for place in kept for block in now[place]["content"]]
        try:
            change = await carried_out(wish, now, summarize)
        except WishError:
            continue

        now = change.messages
        left = [block for message in now for block in message["content"]]
        assert all(block in left for block in blocks if not str(block.get("text", "")).startswith("[Summary"))

    for edit in edits_between(history.ids, before, now, "wished"):
        history.splice(edit, "context-agentic")

    assert_valid_history(history.messages)
    assert history.messages[-1]["content"] == now[-1]["content"]


@pytest.mark.parametrize(
    ("after", "span"),
    [
        ("abcd", None),
        ("aXcd", (1, 1)),
        ("acd", (1, 1)),
        ("ad", (1, 2)),
        ("Xbcd", (0, 0)),
        ("abcX", (3, 3)),
        ("XbcX", (0, 3)),
        ("abXcd", (1, 1)),  # an edit needs a message to hold on to
        ("Xabcd", (0, 0)),
        ("abcdX", (3, 3)),
        ("X", (0, 3)),
    ],
)
def test_one_edit_makes_the_one_list_the_other(after, span):
    letters = {letter: user(letter) for letter in "abcdX"}
    before, wanted = [letters[each] for each in "abcd"], [letters[each] for each in after]

    edits = edits_between([10, 11, 12, 13], before, wanted, "why")

    assert (None if not edits else (edits[0].first - 10, edits[0].last - 10)) == span
    for edit in edits:
        made = [*before[: edit.first - 10], *edit.messages, *before[edit.last - 9 :]]
        assert made == wanted


async def test_a_pin_covers_the_whole_turn():
    messages = [user("task"), *turn_of(1, 2), *turn_of(2, 1)]

    change = await carried_out(Wish("pin", select=[1]), messages, summarize)

    assert [is_pinned(message) for message in change.messages] == [False, True, True, False, False]
