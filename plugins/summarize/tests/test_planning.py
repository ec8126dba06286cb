"""Which messages a summary takes the place of."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.context import newest_turn, pinned_as, pinned_places
from ropewalk.kits.messages.repair import repaired
from ropewalk_summarize.planning import NONE, Excess, plan
from ropewalk_testing import assert_valid_history


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def turn_of(number, parallel=1):
    uses = [{"toolUse": {"toolUseId": f"{number}-{i}", "name": "look", "input": {}}} for i in range(parallel)]
    results = [
        {"toolResult": {"toolUseId": f"{number}-{i}", "status": "success", "content": [{"text": "x" * 200}]}}
        for i in range(parallel)
    ]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


def folded(messages, **options):
    found = plan(messages, **{"ratio": 0.3, "recent": 4, "pin_first": 0, **options})
    return None if found is None else repaired([*found.with_summary("short"), *messages[found.end :]], own=messages)


def test_the_share_is_of_all_messages(chat):
    messages = chat(20)

    assert folded(messages)[1:] == messages[7:]  # 6, and on to where the assistant speaks


def test_the_recent_messages_are_not_touched(chat):
    messages = chat(9)

    assert folded(messages, ratio=0.8)[-4:] == messages[-4:]


def test_too_few_messages_are_no_plan(chat):
    assert folded(chat(4)) is None
    assert folded(chat(5), recent=4) is None  # the first is the task
    assert folded([], recent=0) is None


def test_more_is_taken_when_the_rest_would_not_fit(chat):
    messages = chat(12)

    little, much = folded(messages, recent=10), folded(messages, recent=10, window=1_000, excess=Excess(300, 400))

    assert len(little) > len(much)
    assert much[-1] is messages[-1]


def test_the_task_is_measured_without_the_summary_that_stands_beside_it(chat):
    task = user("long " * 60)
    first = plan([task, *chat(21)[1:]], ratio=0.3, recent=4, pin_first=0, window=1_000)
    messages = repaired([*first.with_summary("short " * 60), *chat(21)[first.end :]])

    again = folded(messages, window=1_000)

    assert task["content"][0] in messages[0]["content"]
    assert again[0]["content"][1:] == task["content"]


def test_the_work_of_planning_grows_with_the_messages_and_no_faster(chat):
    def lines(count):
        messages, seen = chat(count), 0

        def trace(frame, event, argument):
            nonlocal seen
            seen += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            plan(messages, ratio=0.3, recent=4, pin_first=0, window=1_000, excess=Excess(45 * count, 50 * count))
        finally:
            sys.settrace(before)

        return seen

    assert lines(800) < 5 * lines(200)


def test_a_task_that_is_a_tenth_of_the_window_is_summarized_too(chat):
    messages = [user("long " * 400), *chat(21)[1:]]

    assert any("long long" in block["text"] for block in folded(messages)[0]["content"])
    assert not any("long long" in block["text"] for block in folded(messages, window=4_000)[0]["content"])


def test_a_second_plan_takes_in_the_first_summary(chat):
    once = folded(chat(20))
    again = plan(once, ratio=0.3, recent=4, pin_first=0)

    assert again.earlier == "short"


@st.composite
def histories(draw):
    """Any valid history: prompts, answers, tool turns, some of them pinned."""
    messages = [user("task")]
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["answer", "turn", "turns"]))
        if kind == "answer":
            words = "w" * draw(st.integers(1, 400))
            messages += [{"role": "assistant", "content": [{"text": words}]}, user(f"prompt {number}")]
        else:
            messages += turn_of(number, 1 if kind == "turn" else 2)

    if draw(st.booleans()):
        messages.append({"role": "assistant", "content": [{"text": "done"}]})

    pins = draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    return [pinned_as(m) if i in pins else m for i, m in enumerate(messages)]


@given(
    histories(),
    st.floats(0.1, 0.8),
    st.integers(0, 12),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 4_000)),
    st.integers(0, 2_000),
)
def test_any_history_stays_valid_and_keeps_its_pins_and_newest_turn(messages, ratio, recent, pin_first, window, excess):
    wanted = Excess(excess, excess * 1.2) if excess else NONE
    found = plan(messages, ratio=ratio, recent=recent, pin_first=pin_first, window=window, excess=wanted)
    if found is None:
        return

    out = repaired([*found.with_summary("short"), *messages[found.end :]], own=messages)

    assert_valid_history(out)
    blocks = [block for message in out for block in message["content"]]
    kept = pinned_places(messages, pin_first) | newest_turn(messages)
    assert all(block in blocks for place in kept for block in messages[place]["content"])
    if excess == 0:
        tail = messages[len(messages) - recent :] if recent else []
        assert all(block in blocks for message in tail for block in message["content"])

    again = plan(out, ratio=ratio, recent=0, pin_first=pin_first, window=window)
    assert again is None or again.earlier == "short"
