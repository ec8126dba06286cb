"""Summaries in the place of messages."""

from __future__ import annotations

import pytest

from ropewalk.kits.context import pinned_as
from ropewalk.kits.context.folding import HEADER, best_cut, first_words, fold, unfolded
from ropewalk.kits.messages.repair import repaired


def user(text, **more):
    return {"role": "user", "content": [{"text": text}], **more}


def answer(text):
    return {"role": "assistant", "content": [{"text": text}]}


def call(number):
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": str(number), "name": "t", "input": {}}}]}


def result(number):
    return {"role": "user", "content": [{"toolResult": {"toolUseId": str(number), "status": "success", "content": []}}]}


CHAT = [user("0"), answer("1"), user("2"), answer("3"), user("4"), answer("5")]


def texts(messages):
    return [(m["role"], [b.get("text") for b in m["content"]]) for m in messages]


def folded(messages, cut, kept=(), front=0, text="short"):
    folding = fold(messages, cut, set(kept), front)
    return [*folding.with_summary(text), *messages[folding.end :]]


def test_the_summary_is_a_user_message_in_front():
    assert texts(folded(CHAT, 3)) == [
        ("user", [f"{HEADER}\nshort"]),
        ("assistant", ["3"]),
        ("user", ["4"]),
        ("assistant", ["5"]),
    ]


def test_what_follows_it_stays_the_same_object():
    out = folded(CHAT, 3)
    assert all(one is other for one, other in zip(out[1:], CHAT[3:], strict=True))


def test_it_joins_the_user_message_that_follows():
    assert texts(folded(CHAT, 4)) == [("user", [f"{HEADER}\nshort", "4"]), ("assistant", ["5"])]


def test_kept_messages_stand_behind_it():
    assert texts(folded(CHAT, 5, kept={0, 4})) == [("user", [f"{HEADER}\nshort", "0", "4"]), ("assistant", ["5"])]


def test_kept_messages_at_the_start_may_stay_in_front():
    assert texts(folded(CHAT, 5, kept={0}, front=1)) == [("user", ["0", f"{HEADER}\nshort"]), ("assistant", ["5"])]


def test_a_kept_tool_turn_stays_whole():
    messages = [user("0"), call(1), result(1), call(2), result(2), call(3), result(3)]
    out = folded(messages, 5, kept={1, 2})
    assert out[1:] == [call(1), result(1), call(3), result(3)]


def test_nothing_to_fold_is_no_plan():
    assert fold(CHAT, 1, {0}) is None
    assert fold(folded(CHAT, 3), 1, set()) is None  # a summary alone


def test_the_next_summary_takes_in_the_one_before():
    once = folded([*CHAT, user("6"), answer("7")], 3, kept={0}, text="first")
    folding = fold(once, 3, {0}, 0)

    assert folding.earlier == "first"
    assert texts(folding.material) == [("assistant", ["3"]), ("user", ["4"])]
    twice = [*folding.with_summary("second"), *once[folding.end :]]
    assert texts(twice) == [
        ("user", [f"{HEADER}\nsecond", "0"]),
        ("assistant", ["5"]),
        ("user", ["6"]),
        ("assistant", ["7"]),
    ]


def test_the_summary_is_found_where_other_blocks_were_put_before_it():
    message = folded(CHAT, 3)[0]
    moved = {**message, "content": [{"text": "new"}, *message["content"]]}
    assert unfolded(moved) == ("short", user("new"))


def test_a_users_text_that_looks_like_a_summary_is_none():
    message = user(f"{HEADER}\nI am none")
    assert unfolded(message) == (None, message)


def test_a_mark_without_a_summary_does_no_harm():
    message = user("plain", metadata={"custom": {"summary": 0}})
    assert unfolded(message) == (None, message)


def test_metadata_and_pins_survive_joining_and_taking_apart():
    pinned = pinned_as(user("0", metadata={"mine": 1, "custom": {"tag": "x"}}))
    once = folded([pinned, *CHAT[1:]], 3, kept={0}, front=1)
    assert once[0]["metadata"] == {"mine": 1, "custom": {"tag": "x", "pinned": True, "summary": 1}}
    assert unfolded(once[0]) == ("short", pinned)


def test_tokens_count_the_earlier_summary_too():
    once = folded(CHAT, 3, text="x" * 400)
    assert fold(once, 2, set()).tokens == 100 + 1


@pytest.mark.parametrize(
    ("messages", "wanted", "most", "cut"),
    [
        (CHAT, 2, 5, 3),  # the assistant goes on there
        (CHAT, 2, 2, 2),  # or else the user
        (CHAT, 4, 3, 3),  # or else the last one before
        (CHAT, 1, 0, 0),
        ([user("0"), call(1), result(1), call(2), result(2)], 2, 4, 3),
        ([user("0"), call(1), result(1), call(2), result(2)], 2, 2, 1),
    ],
)
def test_the_cut_is_at_a_legal_place(messages, wanted, most, cut):
    assert best_cut(messages, wanted, most) == cut


def test_a_summary_that_was_merged_behind_other_words_is_still_the_summary():
    words = user("0")
    message = repaired([words, folded(CHAT, 3)[0]])[0]

    text, rest = unfolded(message)

    assert text == "short"
    assert rest["content"][0] == words["content"][0]


def test_the_summary_behind_the_cut_is_taken_in_too():
    words = folded([user("q"), answer("a"), user("0"), *CHAT[1:]], 2)
    messages = [answer("lead"), *words]

    plan = fold(messages, 1, set())

    assert plan.earlier == "short"
    assert texts(plan.with_summary("new")) == [("user", [f"{HEADER}\nnew", "0"])]
    assert plan.end == 2


def test_the_first_words_are_those_behind_a_summary_that_stands_alone():
    alone = folded(CHAT, 3)[0]

    assert first_words([alone, answer("1"), user("task")]) == 2
    assert first_words([answer("1"), call(1), result(1)]) is None
    assert first_words(folded([user("q"), answer("a"), *CHAT], 2)) == 0  # joined with the summary
    assert first_words([]) is None
