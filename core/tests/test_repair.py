from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_fakes import problems, results_of

from ropewalk.errors import HistoryError
from ropewalk.kits.messages.repair import repaired
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN

ids = st.sampled_from(["A", "B", "C", "a|b", "", "x" * 80])


def user(*blocks):
    return {"role": "user", "content": [b if isinstance(b, dict) else {"text": b} for b in blocks]}


def assistant(*blocks):
    return {"role": "assistant", "content": [b if isinstance(b, dict) else {"text": b} for b in blocks]}


def asks(tool_use_id):
    return {"toolUse": {"toolUseId": tool_use_id, "name": "f", "input": {}}}


def answers(tool_use_id, text="ok"):
    return {"toolResult": {"toolUseId": tool_use_id, "status": "success", "content": [{"text": text}]}}


blocks = st.one_of(
    st.sampled_from(["x", "", "\ud83d"]).map(lambda t: {"text": t}),
    ids.map(asks),
    ids.map(answers),
    st.just({"cachePoint": {"type": "default"}}),
)
user_blocks = blocks.filter(lambda b: "toolUse" not in b)
shaped = st.lists(
    st.one_of(
        st.lists(user_blocks, max_size=4).map(lambda content: {"role": "user", "content": content}),
        st.lists(blocks, max_size=4).map(lambda content: {"role": "assistant", "content": content}),
    ),
    max_size=8,
)


@st.composite
def valid_histories(draw):
    """Turns that are valid from the start, open uses at the tail included."""
    messages, number = [], 0
    pending = []
    for at in range(draw(st.integers(0, 7))):
        if at % 2 == 0:
            messages.append(user(*(answers(i) for i in pending), *draw(st.lists(st.just("x"), min_size=1, max_size=2))))
            pending = []
        else:
            pending = [f"id{number + n}" for n in range(draw(st.integers(0, 3)))]
            number += len(pending)
            messages.append(assistant("y", *map(asks, pending)))

    return messages


@given(shaped)
def test_any_list_of_messages_becomes_valid_and_the_callers_objects_stay_as_they_are(messages):
    before = copy.deepcopy(messages)

    fixed = repaired(messages)

    assert problems(fixed, open_tail=True) == []
    assert messages == before
    assert repaired(fixed) == fixed


@given(shaped)
def test_nothing_but_orphan_results_is_lost(messages):
    fixed = repaired(messages)

    def count(history, key):
        return sum(key in b for m in history for b in m["content"])

    for key in ("text", "toolUse", "cachePoint"):
        assert count(fixed, key) == count(messages, key)


@given(valid_histories())
def test_a_valid_history_stays_equal(messages):
    before = copy.deepcopy(messages)
    assert problems(messages, open_tail=True) == []

    assert repaired(messages) == messages == before


@given(shaped, st.integers(0, 8))
def test_known_messages_stay_themselves_while_they_are_valid(messages, count):
    own = repaired(messages)

    again = repaired(own, "history", own)

    assert all(a is b for a, b in zip(own, again, strict=True))


def test_missing_results_are_added_next_to_their_call():
    fixed = repaired([user("u"), assistant(asks("T1"), asks("T2")), user(answers("T2"), "more"), assistant("a")])

    assert [next(iter(b)) for b in fixed[2]["content"]] == ["toolResult", "toolResult", "text"]
    assert results_of(fixed) == {"T1": OUTCOME_UNKNOWN, "T2": "ok"}


def test_an_assistant_that_follows_its_own_open_call_is_kept_apart_by_results():
    fixed = repaired([user("u"), assistant(asks("T1")), assistant("later")])

    assert [m["role"] for m in fixed] == ["user", "assistant", "user", "assistant"]
    assert results_of(fixed) == {"T1": OUTCOME_UNKNOWN}


def test_two_calls_of_one_id_get_ids_and_results_of_their_own():
    fixed = repaired([user("u"), assistant(asks("A"), asks("A")), user(answers("A", "one"), answers("A", "two"))])
    first, second = (b["toolUse"]["toolUseId"] for b in fixed[1]["content"])

    assert first == "A" != second
    assert results_of(fixed) == {first: "one", second: "two"}


def test_an_id_of_an_earlier_turn_is_replaced_with_its_result():
    turn = [assistant(asks("A")), user(answers("A", "x"))]
    fixed = repaired([user("u"), *turn, *turn])

    assert problems(fixed) == []
    assert set(results_of(fixed).values()) == {"x"}


def test_a_message_of_nothing_but_orphan_results_goes_and_its_neighbours_merge():
    assert repaired([user("a"), assistant("b"), user(answers("gone")), assistant("c")]) == [
        user("a"),
        assistant("b", "c"),
    ]


def test_a_leading_assistant_stays():
    assert repaired([assistant("hello"), user("hi")]) == [assistant("hello"), user("hi")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("hello", "is str"),
        ({"content": []}, r'\["role"\] is None'),
        ({"role": "system", "content": []}, "'system'"),
        ({"role": "user"}, r'\["content"\] is NoneType'),
        ({"role": "user", "content": "hello"}, "use a list of blocks"),
        ({"role": "user", "content": ["hello"]}, r'\["content"\]\[0\] is no content block'),
        ({"role": "user", "content": [{"txt": "hello"}]}, "is no content block"),
        ({"role": "user", "content": [{"text": 3}]}, "use a str"),
        ({"role": "assistant", "content": [{"toolUse": {"name": "f"}}]}, "lacks one of toolUseId"),
        ({"role": "user", "content": [{"toolResult": None}]}, "lacks one of toolUseId"),
        (assistant({"toolUse": {"toolUseId": ["A"], "name": "f", "input": {}}}), "toolUseId"),
        (user({"toolResult": {"toolUseId": {}, "content": []}}), "toolUseId"),
        (user({"toolResult": {"toolUseId": "A", "content": "text"}}), "content"),
        (assistant({"toolUse": {"toolUseId": "A", "name": "f", "input": "{}"}}), "input"),
        (user(asks("A")), "user"),
    ],
    ids=ascii,
)
def test_what_is_no_message_is_refused_with_its_place(value, said):
    with pytest.raises(HistoryError, match=said) as caught:
        repaired([user("fine"), value], "agent.messages")

    assert str(caught.value).startswith("agent.messages[1]")


# -- what a message is marked with -------------------------------------------------------------------------------------


def marked(message, **custom):
    return {**message, "metadata": {"custom": custom}}


@pytest.mark.parametrize("speaker", [user, assistant], ids=["user", "assistant"])
@pytest.mark.parametrize("other", [{}, {"pinned": False}, {"note": 1}], ids=str)
def test_a_pin_stays_when_two_messages_become_one(speaker, other):
    for pair in (
        [marked(speaker("a"), pinned=True), marked(speaker("b"), **other)],
        [marked(speaker("a"), **other), marked(speaker("b"), pinned=True)],
    ):
        (message,) = repaired(pair)
        assert message["metadata"]["custom"] == {**other, "pinned": True}
        assert message["content"] == [{"text": "a"}, {"text": "b"}]


def test_the_first_message_has_its_say_where_both_are_marked():
    one = {**user("a"), "metadata": {"mine": 1, "custom": {"tag": "x"}}}
    other = {**user("b"), "metadata": {"mine": 2, "theirs": 3, "custom": {"tag": "y", "note": 1}}}

    assert repaired([one, other])[0]["metadata"] == {"mine": 1, "theirs": 3, "custom": {"tag": "x", "note": 1}}
    assert one["metadata"] == {"mine": 1, "custom": {"tag": "x"}}


@pytest.mark.parametrize("odd", [None, "odd", {}, {"custom": None}, {"custom": ["pinned"]}], ids=str)
def test_metadata_of_a_strange_shape_takes_no_pin_away(odd):
    (message,) = repaired([{**user("a"), "metadata": odd}, marked(user("b"), pinned=True)])

    assert message["metadata"]["custom"] == {"pinned": True}


def test_results_with_a_pin_keep_it_beside_what_is_merged_into_them():
    messages = [user("q"), assistant(asks("A")), user(answers("A")), marked(user("more"), pinned=True)]

    assert repaired(messages)[2]["metadata"] == {"custom": {"pinned": True}}


# -- blocks that others wrote ------------------------------------------------------------------------------------------


def test_what_a_block_says_it_has_not_is_not_there():
    image = {"image": {"format": "png", "source": {"bytes": b"x"}}}
    given = {"text": None, "toolUse": None, **image}

    assert repaired([user(given, " ")])[0]["content"] == [image, {"text": " "}]
    assert given == {"text": None, "toolUse": None, **image}


def test_a_text_of_nothing_is_refused():
    with pytest.raises(HistoryError, match=r'messages\[0\]\["content"\]\[0\]\["text"\] is NoneType: use a str'):
        repaired([user({"text": None})])
