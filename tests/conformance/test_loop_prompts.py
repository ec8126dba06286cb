"""Loop and messages: what an agent can be called with, and what stays the caller's (conformance 15 to 20)."""

from __future__ import annotations

import copy

import pytest

from ropewalk.errors import InvalidPromptError


def test_no_prompt_goes_on_from_the_history_and_adds_nothing_before_the_model(ask, make_agent, shape):
    """Conformance 15."""
    agent, model = make_agent(["an answer"], messages=[{"role": "user", "content": [{"text": "a question"}]}])

    ask(agent, None)

    assert shape(model.requests[0].messages) == [("user", [{"text": "a question"}])]
    assert len(agent.messages) == 2


def test_no_prompt_after_an_assistant_turn_extends_that_turn(ask, make_agent, shape):
    """Conformance 15."""
    messages = [
        {"role": "user", "content": [{"text": "a poem"}]},
        {"role": "assistant", "content": [{"text": "Roses are"}]},
    ]
    agent, model = make_agent([" red"], messages=messages)

    ask(agent, None)

    assert shape(model.requests[0].messages) == shape(messages)
    assert [role for role, _ in shape(agent.messages)] == ["user", "assistant"]
    assert "".join(block["text"] for block in agent.messages[1]["content"]) == "Roses are red"


@pytest.mark.parametrize("prompt", [None, []], ids=["nothing", "an empty list"])
def test_nothing_to_go_on_from_is_refused(ask, make_agent, prompt):
    """Conformance 15."""
    agent, model = make_agent(["never"])

    with pytest.raises(InvalidPromptError):
        ask(agent, prompt)

    assert (model.calls, list(agent.messages)) == (0, [])


def test_an_empty_prompt_is_refused_with_the_way_to_go_on(ask, make_agent):
    """Conformance 16."""
    agent, model = make_agent(["never"])

    with pytest.raises(InvalidPromptError, match="None") as caught:
        ask(agent, "")

    assert isinstance(caught.value, ValueError)
    assert (model.calls, list(agent.messages)) == (0, [])


def test_a_list_of_content_blocks_is_one_user_message(ask, make_agent, shape):
    """Conformance 17."""
    agent, _ = make_agent(["ok"])
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}

    ask(agent, [{"text": "what is this?"}, image])

    assert shape(agent.messages[:1]) == [("user", [{"text": "what is this?"}, image])]


def test_a_list_of_messages_is_appended_and_the_callers_dicts_are_left_alone(ask, make_agent, shape):
    """Conformance 18 (B)."""
    prompt = [
        {"role": "user", "content": [{"text": "one"}]},
        {"role": "assistant", "content": [{"text": "two"}]},
        {"role": "user", "content": [{"text": "three"}]},
    ]
    before = copy.deepcopy(prompt)
    agent, _ = make_agent(["four", "six"])

    ask(agent, prompt)
    ask(agent, "five")

    assert prompt == before
    assert [content[0]["text"] for _, content in shape(agent.messages)] == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
    ]
    assert all(mine is not theirs for mine, theirs in zip(agent.messages, prompt, strict=False))


def test_messages_of_one_role_in_a_row_are_merged_without_touching_the_callers(ask, make_agent, shape):
    """Conformance 18 (B)."""
    prompt = [{"role": "user", "content": [{"text": "one"}]}, {"role": "user", "content": [{"text": "two"}]}]
    before = copy.deepcopy(prompt)
    agent, _ = make_agent(["ok"])

    ask(agent, prompt)

    assert prompt == before
    assert shape(agent.messages[:1]) == [("user", [{"text": "one"}, {"text": "two"}])]


WRONG = [
    42,
    1.5,
    b"bytes",
    ...,
    [1, 2],
    ["text"],
    [{"nonsense": 1}],
    [{"text": "a"}, {"role": "user", "content": [{"text": "b"}]}],
    [{"role": "system", "content": [{"text": "x"}]}],
    [{"role": "user"}],
    {"text": "a block alone"},
]


@pytest.mark.parametrize("prompt", WRONG, ids=lambda prompt: repr(prompt)[:40])
def test_a_prompt_of_a_wrong_form_is_refused_and_changes_nothing(ask, make_agent, prompt):
    """Conformance 19."""
    agent, model = make_agent(["fine"])

    with pytest.raises(InvalidPromptError):
        ask(agent, prompt)

    assert (model.calls, list(agent.messages)) == (0, [])
    assert str(ask(agent, "right")) == "fine\n"


def test_the_callers_messages_are_copied(ask, make_agent):
    """Conformance 20."""
    mine = [
        {"role": "user", "content": [{"text": "one"}]},
        {"role": "assistant", "content": [{"text": "two"}]},
        {"role": "user", "content": [{"text": "three"}]},
    ]
    before = copy.deepcopy(mine)
    agent, _ = make_agent(["ok", "ok"], messages=mine)

    ask(agent, "four")
    ask(agent, "five")

    assert mine == before
    assert agent.messages is not mine


def test_changing_the_given_list_later_does_not_reach_the_agent(ask, make_agent, shape):
    """Conformance 20."""
    mine = [{"role": "user", "content": [{"text": "one"}]}, {"role": "assistant", "content": [{"text": "two"}]}]
    agent, model = make_agent(["ok"], messages=mine)
    mine.clear()

    ask(agent, "three")

    assert [content[0]["text"] for _, content in shape(model.requests[0].messages)] == ["one", "two", "three"]


def test_a_prompt_that_ends_with_the_assistant_is_gone_on_from(ask, make_agent, shape):
    """Conformance 18 (B)."""
    prompt = [
        {"role": "user", "content": [{"text": "a poem"}]},
        {"role": "assistant", "content": [{"text": "Roses are"}]},
    ]
    before = copy.deepcopy(prompt)
    agent, model = make_agent([" red"])

    ask(agent, prompt)

    assert prompt == before
    assert shape(model.requests[0].messages) == shape(prompt)
    assert [role for role, _ in shape(agent.messages)] == ["user", "assistant"]


async def test_the_blocking_call_works_inside_a_running_loop(make_agent):
    """Conformance 1."""
    agent, _ = make_agent(["hi", "hi again"])

    assert str(agent("one")) == "hi\n"
    assert str(await agent.invoke_async("two")) == "hi again\n"
    assert len(agent.messages) == 4
