from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_fakes import problems, results_of

from ropewalk.errors import HistoryError
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Journal, Record
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN


def user(*blocks):
    return {"role": "user", "content": [b if isinstance(b, dict) else {"text": b} for b in blocks]}


def assistant(*blocks):
    return {"role": "assistant", "content": [b if isinstance(b, dict) else {"text": b} for b in blocks]}


def asks(tool_use_id):
    return {"toolUse": {"toolUseId": tool_use_id, "name": "f", "input": {}}}


def answers(tool_use_id, text="ok"):
    return {"toolResult": {"toolUseId": tool_use_id, "status": "success", "content": [{"text": text}]}}


# -- any sequence of changes -------------------------------------------------------------------------------------

ids = st.sampled_from(["A", "B", "C", "D", "a|b"])
message = st.one_of(
    st.lists(st.sampled_from(["x", ""]).map(lambda t: {"text": t}) | ids.map(answers), max_size=3).map(
        lambda content: {"role": "user", "content": content}
    ),
    st.lists(st.sampled_from(["y", ""]).map(lambda t: {"text": t}) | ids.map(asks), max_size=3).map(
        lambda content: {"role": "assistant", "content": content}
    ),
)
conversation = st.lists(message, max_size=3)
prompt = st.one_of(conversation, st.just([]), st.just([user("question")]))
number = st.integers(0, 9)


def ask_of(history, data):
    """What the loop does with an answer of the model: legal ids, then the message."""
    taken, blocks = set(), [{"text": "t"}]
    for wanted in data.draw(st.lists(ids, max_size=3)):
        use_id = history.free_id(wanted, taken)
        taken.add(use_id)
        blocks.append(asks(use_id))

    history.add_assistant({"role": "assistant", "content": blocks})


def splice(history, data):
    if history.ids and not history.open_uses:
        first = data.draw(number) % len(history.ids)
        last = min(first + data.draw(number) % 3, len(history.ids) - 1)
        edit = HistoryEdit(history.ids[first], history.ids[last], tuple(data.draw(conversation)), "test")
        history.splice(edit, "p")


def edit_by_user(history, data):
    journal = history.journal
    history.end_run(paused=False)
    messages = history.messages
    for new in data.draw(conversation):
        messages.insert(data.draw(number), new)

    if messages and data.draw(st.booleans()):
        del messages[data.draw(number) % len(messages)]

    history.begin_run(journal)


def prompted_run_that_fails(history, data):
    """An input, maybe answers to it, and back again."""
    history.close_open_uses("closed")
    before = list(history.messages)
    mark = history.add_input(data.draw(prompt))
    assert problems(history.messages) == []
    if data.draw(st.booleans()):
        history.add_user([{"text": "feedback"}])

    history.rollback(mark)
    assert history.messages == before


STEPS = {
    "ask": lambda h, d: h.open_uses or ask_of(h, d),
    "answer": lambda h, d: h.open_uses and h.add_user([answers(i) for i in h.open_uses]),
    "say": lambda h, d: h.open_uses or h.add_user([{"text": "more"}]),
    "close": lambda h, d: h.close_open_uses("closed"),
    "redact": lambda h, d: h.open_uses or h.redact_last_input("[gone]"),
    "splice": splice,
    "edit": edit_by_user,
    "input": lambda h, d: h.add_input(d.draw(prompt)),
    "fail": prompted_run_that_fails,
}


async def unwritten(records):
    raise AssertionError("nobody commits here")


@given(conversation, st.lists(st.sampled_from(sorted(STEPS)), max_size=8), st.booleans(), st.data())
def test_any_sequence_of_changes_leaves_a_valid_history(start, steps, recorded, data):
    history = History(start)
    journal = Journal("run", unwritten) if recorded else None
    log = LogState(list(history.messages), list(history.ids), history._next_id)
    history.begin_run(journal)
    used = set(history.ids)
    for step in steps:
        views = [(view := history.view(), list(view))]
        known = {id(m): i for m, i in zip(history.messages, history.ids, strict=True)}
        STEPS[step](history, data)
        assert problems(history.messages, open_tail=True) == []
        last = history.messages[-1] if history.messages else {"role": "user", "content": []}
        waiting = [b["toolUse"]["toolUseId"] for b in last["content"] if "toolUse" in b]
        assert list(history.open_uses) == waiting
        assert len(history.ids) == len(history.messages) == len(set(history.ids))
        for each, at in zip(history.messages, history.ids, strict=True):
            assert known.get(id(each), at) == at or at not in used

        if journal:
            fold(log, [Record.from_dict(json.loads(record.to_json())) for record in journal.take()])
            assert (log.messages, log.ids) == (history.messages, history.ids)
            assert log.next_id <= history._next_id

        used.update(history.ids)
        assert all(list(view) == then for view, then in views)
        for sent in history.view():
            assert sent["content"]
            assert all("text" not in b or b["text"].strip() for b in sent["content"])


# -- appending and merging ---------------------------------------------------------------------------------------


def test_user_after_user_is_merged_with_results_first():
    history = History([user("a"), assistant(asks("A"))])

    history.add_user([{"text": "more"}, answers("A")])
    history.add_user([{"text": "end"}])

    assert history.messages[2] == user(answers("A"), "more", "end")
    assert len(history.messages) == 3
    assert history.open_uses == {}


def test_the_answer_to_a_prefill_extends_the_last_assistant_message():
    history = History([user("a"), assistant("Once")])

    history.add_assistant(assistant(" upon", asks("A")))

    assert history.messages[1] == assistant("Once", " upon", asks("A"))
    assert list(history.open_uses) == ["A"]


def test_the_callers_messages_are_copied_and_not_written_to():
    given_messages = [user("a"), user("b"), assistant(asks("A"))]
    before = copy.deepcopy(given_messages)
    history = History(given_messages)

    history.add_input([user("c")])

    assert given_messages == before
    assert history.messages[0] is not given_messages[0]


@pytest.mark.parametrize("prompt", [[], [user("go")], [assistant(asks("C"))], [user(answers("B"))]], ids=repr)
def test_calls_left_open_are_answered_on_every_entry_path(prompt):
    history = History([user("a"), assistant(asks("A"), asks("B"))])

    history.add_input(prompt)

    assert problems(history.messages) == []
    assert results_of(history.messages)["A"] == OUTCOME_UNKNOWN


@pytest.mark.parametrize("prompt", [[], [user("go")], [user("q"), assistant("x")], [user(answers("B"))]], ids=repr)
def test_a_rollback_over_closed_calls_leaves_no_call_open(prompt):
    history = History([user("a"), assistant(asks("A"), asks("B"))])

    history.rollback(history.add_input(prompt))

    assert problems(history.messages) == []
    assert not any("text" in b for m in history.messages[2:] for b in m["content"])


def test_a_rollback_takes_back_what_was_merged_into_the_last_message():
    history = History([user("a")])
    kept = history.messages[0]

    mark = history.add_input([user("b"), user("c")])
    assert history.messages == [user("a", "b", "c")]
    history.rollback(mark)

    assert history.messages == [user("a")]
    assert history.messages[0] is kept


PIN = {"custom": {"pinned": True}}


@pytest.mark.parametrize("before", ["a text", "a call left open"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_pin_on_a_prompt_stays_when_it_joins_the_message_before_it(before, recorded):
    start = [user("a")] if before == "a text" else [user("a"), assistant(asks("A"))]
    journal = Journal("run", unwritten) if recorded else None
    history = History(start)
    log = LogState(list(history.messages), list(history.ids), history._next_id)
    history.begin_run(journal)
    kept = history.messages[-1]

    mark = history.add_input([{**user("keep"), "metadata": PIN}, user("and this")])
    last = history.messages[-1]
    assert last["metadata"] == PIN
    assert [block["text"] for block in last["content"] if "text" in block][-2:] == ["keep", "and this"]
    if recorded:
        fold(log, [Record.from_dict(json.loads(record.to_json())) for record in journal.take()])
        assert log.messages[-1] == last

    history.rollback(mark)
    assert not any("metadata" in message for message in history.messages)
    assert (history.messages[-1] is kept) == (before == "a text")


def test_a_pin_in_the_history_stays_when_a_prompt_joins_it():
    history = History([{**user("keep"), "metadata": PIN}])

    history.add_input([{**user("more"), "metadata": {"custom": {"pinned": False, "note": 1}}}])

    assert history.messages == [{**user("keep", "more"), "metadata": {"custom": {"pinned": True, "note": 1}}}]


def test_ids_count_upwards_and_survive_a_splice():
    history = History([user("a"), assistant("b"), user("c"), assistant("d")])

    history.splice(HistoryEdit(0, 1, (user("s"), assistant("t"))), "p")

    assert history.ids == [4, 5, 2, 3]
    history.add_user([{"text": "e"}])
    assert history.ids[-1] == 6


@pytest.mark.parametrize(("first", "last", "said"), [(0, 9, "not in the history"), (2, 1, "other order")])
def test_a_splice_of_messages_that_are_not_there_names_the_plugin(first, last, said):
    history = History([user("a"), assistant("b"), user("c")])

    with pytest.raises(HistoryError, match=said) as caught:
        history.splice(HistoryEdit(first, last), "trimmer")

    assert "'trimmer'" in str(caught.value)
    assert len(history.messages) == 3


def test_redaction_replaces_texts_and_keeps_results():
    history = History([user("a"), assistant(asks("A")), user(answers("A", "secret"), "secret"), assistant("b")])

    history.redact_last_input("[gone]")

    assert history.messages[2] == user(answers("A", "[gone]"))
    history = History([user("secret")])
    history.redact_last_input("[gone]")
    assert history.messages == [user("[gone]")]


# -- agent.messages ----------------------------------------------------------------------------------------------

EDITS = {
    "append": lambda m: m.append(user("x")),
    "extend": lambda m: m.extend([user("x")]),
    "insert": lambda m: m.insert(0, user("x")),
    "pop": lambda m: m.pop(),
    "remove": lambda m: m.remove(user("a")),
    "clear": lambda m: m.clear(),
    "sort": lambda m: m.sort(key=str),
    "reverse": lambda m: m.reverse(),
    "set": lambda m: m.__setitem__(0, user("x")),
    "slice": lambda m: m.__setitem__(slice(None), []),
    "del": lambda m: m.__delitem__(0),
    "iadd": lambda m: m.__iadd__([user("x")]),
    "imul": lambda m: m.__imul__(2),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_shows_at_once_and_is_made_valid_at_the_next_run(edit):
    history = History([user("a"), assistant("b"), user("c")])
    plain = list(history.messages)
    edit(plain)

    edit(history.messages)
    assert history.messages == plain
    history.begin_run(None)

    assert problems(history.messages) == []
    assert len(history.ids) == len(history.messages)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_during_a_run_is_refused_and_changes_nothing(edit):
    history = History([user("a"), assistant("b")])
    history.begin_run(None)

    with pytest.raises(HistoryError, match="while the agent runs"):
        edit(history.messages)

    assert history.messages == [user("a"), assistant("b")]
    history.end_run(paused=False)
    history.messages.append(user("fine"))


def test_every_way_to_change_a_list_is_staged():
    reading = {"__getitem__", "__len__", "__contains__", "__iter__", "__reversed__", "copy", "index", "count"}
    writing = {n for n in vars(list) if not n.startswith("__")} | {"__setitem__", "__delitem__", "__iadd__", "__imul__"}

    assert {name for name in writing - reading if name not in vars(type(History().messages))} == set()


def test_a_bad_edit_is_named_and_nothing_is_changed_until_it_is_mended():
    history = History([user("a")])
    history.messages.append({"role": "assistant"})

    with pytest.raises(HistoryError, match=r'agent.messages\[1\]\["content"\]'):
        history.begin_run(None)

    del history.messages[1]
    history.begin_run(None)
    assert history.messages == [user("a")]


def test_the_messages_are_a_list_for_json_equality_copies_and_pickles():
    messages = History([user("a")]).messages

    assert isinstance(messages, list)
    assert json.loads(json.dumps(messages)) == messages == [user("a")]
    for copied in (copy.copy(messages), copy.deepcopy(messages), pickle.loads(pickle.dumps(messages)), messages.copy()):
        assert type(copied) is list
        assert copied == messages


def test_edits_are_recorded_as_one_splice_of_the_caller():
    history = History([user("a"), assistant("b"), user("c")])
    history.messages.pop()
    history.messages.append(user("d"))
    journal = Journal("run", unwritten)

    history.begin_run(journal)

    (record,) = journal.take()
    assert record.kind == "history_spliced"
    assert record.data["plugin"] == "caller"
    assert (record.data["at"], record.data["gone"], record.data["messages"]) == (2, 1, [user("d")])


def test_a_run_that_is_refused_leaves_no_journal_behind():
    history = History()
    history.messages.append("no message")

    with pytest.raises(HistoryError):
        history.begin_run(Journal("run", unwritten))

    assert history.journal is None


def test_an_answer_that_continues_another_one_keeps_its_metadata():
    history = History(
        [{"role": "user", "content": [{"text": "q"}]}, {"role": "assistant", "content": [{"text": "Once"}]}]
    )
    pinned = {"custom": {"pinned": True}}
    history.add_assistant({"role": "assistant", "content": [{"text": " upon"}], "metadata": pinned})

    assert history.messages[-1]["metadata"] == pinned
    assert [block["text"] for block in history.messages[-1]["content"]] == ["Once", " upon"]


def test_an_input_is_not_taken_back_when_what_stood_before_it_has_changed():
    history = History([user("a"), assistant("b"), user("c"), assistant("d")])
    mark = history.mark()
    history.add_input([user("e")])
    history.splice(HistoryEdit(history.ids[2], history.ids[3], (user("f"), assistant("g")), "other"), "p")
    before = list(history.messages)

    history.rollback(mark)

    assert history.messages == before


def test_taking_back_an_input_that_is_gone_already_changes_nothing():
    history = History([user("a"), assistant("b")])
    mark, version = history.mark(), history.version
    history.rollback(mark)

    assert history.version == version
    assert len(history.messages) == 2


def test_an_edit_that_changes_nothing_is_not_in_the_log():
    async def write(records): ...

    history = History([user("a"), assistant("b")])
    history.journal = Journal("r", write)
    history.splice(HistoryEdit(history.ids[0], history.ids[0], (history.messages[0],)), "p")

    assert history.journal.take() == []
