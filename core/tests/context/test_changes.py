"""From a plan to edits."""

from __future__ import annotations

from types import SimpleNamespace

from ropewalk.kits.calls.edits import ContextRequest
from ropewalk.kits.context import conversation, edits_of, put
from ropewalk.kits.messages.history import History


def chat(count):
    return [
        {"role": "assistant" if place % 2 else "user", "content": [{"text": f"m{place}"}]} for place in range(count)
    ]


def carried_out(messages, plan):
    history = History(messages)
    before = list(history.messages)
    after = [before[place] if each is messages[place] else each for place, each in enumerate(plan)]
    edits = edits_of(history.ids, before, after, "why")
    for edit in edits:
        history.splice(edit, "p")

    return edits, history


def test_neighbours_that_go_are_one_edit_and_what_stays_keeps_its_id():
    messages = chat(8)
    plan = [messages[0], None, None, *messages[3:]]
    edits, history = carried_out(messages, plan)
    assert [(e.first, e.last, e.messages, e.reason) for e in edits] == [(1, 2, (), "why")]
    assert history.ids == [0, 3, 4, 5, 6, 7]
    assert history.messages == [messages[0], *messages[3:]]


def test_changes_far_apart_are_edits_of_their_own():
    messages = chat(20)
    short = {"role": "user", "content": [{"text": "short"}]}
    plan = [None, None, *messages[2:12], short, *messages[13:]]
    edits, history = carried_out(messages, plan)
    assert [(e.first, e.last, len(e.messages)) for e in edits] == [(0, 1, 0), (12, 12, 1)]
    assert history.messages == [m for m in plan if m is not None]


def test_changes_close_to_one_another_are_one_edit():
    messages = chat(8)
    other = [{**m, "content": [{"text": "x"}]} for m in messages]
    edits, history = carried_out(messages, [other[0], messages[1], other[2], *messages[3:]])
    assert [(e.first, e.last, len(e.messages)) for e in edits] == [(0, 2, 3)]
    assert history.ids[1] == 1


def test_a_plan_that_changes_nothing_is_no_edit():
    messages = chat(3)
    assert edits_of([0, 1, 2], messages, list(messages), "why") == []


def agent_with(messages):
    history = History(messages)
    return SimpleNamespace(history=history, messages=history.messages)


def test_the_conversation_has_one_message_for_each_id_also_behind_a_stand_in():
    agent = agent_with(chat(3)[1:])
    history = agent.history
    request = ContextRequest(history.view(), history.ids, lambda: 0)
    assert len(request.messages) == 3
    assert conversation(request, agent) == list(history.messages)


def test_the_conversation_of_a_run_beside_is_that_of_its_branch():
    agent = agent_with(chat(4))
    branch = agent.history.branch()
    request = ContextRequest(branch.view(), branch.ids, lambda: 0)
    agent.history.add_user([{"text": "meanwhile"}])
    assert conversation(request, agent) == chat(4)


def test_by_hand_the_list_is_edited_only_when_something_changes():
    agent = agent_with(chat(4))
    put(agent, list(agent.messages))
    assert agent.messages.before_edit is None
    put(agent, [*agent.messages[:2], None, None])
    assert agent.messages == chat(2)
