from __future__ import annotations

import pytest

from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.rules import BLANK, INVALID_TOOL_NAME, LEADING_USER


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def assistant(text):
    return {"role": "assistant", "content": [{"text": text}]}


@pytest.fixture
def history():
    return History([user("a"), assistant("b"), user("c")])


def test_a_view_reads_like_the_list(history):
    view = history.view()

    assert len(view) == 3
    assert list(view) == history.messages == view
    assert view[0] == view[-3] == user("a")
    assert view[-1] is history.messages[-1]
    assert view[1:] == history.messages[1:]
    assert view[::-1] == history.messages[::-1]
    assert view != [user("a")]
    assert view.index(assistant("b")) == 1
    assert assistant("b") in view
    assert repr(view) == repr(list(history.messages))
    for index in (3, -4):
        with pytest.raises(IndexError):
            view[index]


def test_a_view_cannot_be_written_or_hashed(history):
    with pytest.raises(TypeError):
        history.view()[0] = user("x")

    with pytest.raises(TypeError):
        hash(history.view())


CHANGES = {
    "append": lambda h: h.add_assistant(assistant("new")),
    "merge": lambda h: h.add_user([{"text": "more"}]),
    "redact": lambda h: h.redact_last_input("[gone]"),
    "drop": lambda h: h.splice(HistoryEdit(0, 2), "p"),
    "insert": lambda h: h.splice(HistoryEdit(0, 0, (user("x"), assistant("y"), user("z"))), "p"),
    "rollback": lambda h: h.rollback(h.mark()._replace(length=1, last=h.messages[0])),
    "edit": lambda h: (h.end_run(paused=False), h.messages.clear(), h.begin_run(None)),
    "blank": lambda h: h.add_assistant(assistant("")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_later_changes_do_not_show_in_an_earlier_view(history, change):
    view = history.view()
    before = list(view)

    change(history)
    change_again = history.view()
    history.add_user([{"text": "and more"}])

    assert len(view) == 3
    assert list(view) == before
    assert [view[i] for i in range(3)] == before
    assert change_again != view or change is CHANGES["rollback"]


def test_a_view_before_the_continuation_of_a_prefill_has_the_prefill_alone():
    history = History([user("a"), assistant("Once")])
    view = history.view()

    history.add_assistant(assistant(" upon"))

    assert view[-1] == assistant("Once")
    assert history.messages[-1]["content"] == [{"text": "Once"}, {"text": " upon"}]


def test_what_may_not_be_sent_has_a_stand_in_and_the_stored_message_stays():
    odd = {"role": "assistant", "content": [{"text": " "}, {"toolUse": {"toolUseId": "A", "name": "a b", "input": {}}}]}
    history = History([user("a"), {"role": "assistant", "content": []}, user("b"), odd])

    view = history.view()

    assert view[1]["content"] == [{"text": BLANK}]
    assert [list(b) for b in view[3]["content"]] == [["toolUse"]]
    assert view[3]["content"][0]["toolUse"]["name"] == INVALID_TOOL_NAME
    assert list(view)[3] == view[3]
    assert history.messages[1]["content"] == []
    assert history.messages[3] == odd


def test_a_history_that_begins_with_the_assistant_is_sent_with_a_stated_user_turn_before_it():
    history = History([assistant("hello"), user("hi")])

    view = history.view()

    assert len(view) == 3
    assert view[0] is LEADING_USER
    assert list(view) == [LEADING_USER, assistant("hello"), user("hi")]
    assert view[1] == view[-2] == assistant("hello")
    assert history.messages[0] == assistant("hello")


def test_views_cost_no_copy_of_the_history(history):
    view = history.view()

    assert view[2] is history.messages[2]
