"""The rule for valid histories."""

from __future__ import annotations

import pytest

from ropewalk_testing import assert_valid_history, text, use


def user(*blocks):
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in blocks]}


def model(*blocks):
    return {**user(*blocks), "role": "assistant"}


def result(use_id):
    return {"toolResult": {"toolUseId": use_id, "status": "success", "content": []}}


A, B = use("add", {}, id="A"), use("add", {}, id="B")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("hi")],
        [user("hi"), model("hello"), user("more")],
        [user("hi"), model("I add", A, B), user(result("B"), result("A"), "and so on"), model("done")],
    ],
)
def test_a_valid_history_passes(messages):
    assert_valid_history(messages)


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([model("hello")], "message 0 is of the assistant: a history starts with a user turn"),
        ([user("a"), user("b")], "messages 0 and 1 are both of the user"),
        ([user("a"), model("b"), model("c")], "messages 1 and 2 are both of the assistant"),
        ([user("a"), model(A), user("b")], "tool use 'A' of message 1 has no result in message 2"),
        ([user("a"), model(A, B), user(result("A"))], "tool use 'B' of message 1 has no result in message 2"),
        ([user("a"), model(A), user(result("A"), result("A"))], "tool use 'A' of message 1 has 2 results in message 2"),
        ([user("a"), model("b"), user(result("A"))], "the result for 'A' in message 2 answers no tool use"),
        ([user(result("A"))], "the result for 'A' in message 0 answers no tool use"),
        ([user("a"), model(A, A), user(result("A"))], "message 1 uses the tool-use id 'A' again"),
        (
            [user("a"), model(A), user(result("A")), model(A), user(result("A"))],
            r"message 3 uses the tool-use id 'A' again \(first used in message 1\)",
        ),
        ([user("a"), model(A)], "tool use 'A' of the last message has no result"),
        ([user(A), model("b")], "message 0 is of the user and holds a toolUse block"),
        ([user("a"), model(result("A"))], "message 1 is of the assistant and holds a toolResult block"),
        ([user("a"), {"role": "system", "content": []}], "message 1 has the role 'system'"),
    ],
)
def test_each_fault_is_named(messages, fault):
    with pytest.raises(AssertionError, match=fault):
        assert_valid_history(messages)


def test_an_open_tail_is_valid_when_asked_for():
    assert_valid_history([user("a"), model(A, B)], open_tail=True)


def test_an_open_tail_excuses_the_last_message_only():
    with pytest.raises(AssertionError, match="'A' of message 1 has no result"):
        assert_valid_history([user("a"), model(A), user("b"), model(B)], open_tail=True)


def test_the_message_outlines_the_conversation():
    with pytest.raises(AssertionError) as caught:
        assert_valid_history([user("a" * 60), model(A), user(result("A")), user({"image": {}})])

    assert str(caught.value).splitlines()[-4:] == [
        f"    0 user: '{'a' * 37}...'",
        "    1 assistant: use add('A')",
        "    2 user: result('A', success)",
        "    3 user: image",
    ]
