"""A summary whose cut would fall into a turn of parallel calls (scenario A8)."""

from __future__ import annotations

import pytest

from ropewalk import ContextWindowOverflowException, SummarizingConversationManager
from ropewalk_testing import assert_valid_history


def parallel(number):
    ids = [f"{number}-a", f"{number}-b"]
    uses = [{"toolUse": {"toolUseId": i, "name": "look", "input": {"at": i}}} for i in ids]
    results = [
        {"toolResult": {"toolUseId": i, "status": "success", "content": [{"text": f"result of {i}. " + "word " * 40}]}}
        for i in ids
    ]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def overflow():
    return ContextWindowOverflowException("the prompt is too long")


def ids_in(messages, key):
    return [block[key]["toolUseId"] for message in messages for block in message["content"] if key in block]


@pytest.mark.parametrize("recent", [3, 4, 5])
@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 0.8])
def test_turns_of_parallel_calls_move_together(make_agent, recent, ratio):
    before = [user("task"), *(message for i in range(8) for message in parallel(i))]
    manager = SummarizingConversationManager(summary_ratio=ratio, preserve_recent_messages=recent)
    agent, model = make_agent([overflow(), "THE SUMMARY", "Done."], messages=before, conversation_manager=manager)

    agent(None)

    for messages in (model.requests[-1].messages, agent.messages):
        assert_valid_history(messages)
        uses = ids_in(messages, "toolUse")
        assert uses == ids_in(messages, "toolResult")
        assert len(uses) % 2 == 0
        assert 0 < len(uses) < 16


def test_the_summarizer_gets_a_legal_request_without_tool_blocks(make_agent):
    before = [user("task"), *(message for i in range(8) for message in parallel(i))]
    manager = SummarizingConversationManager(preserve_recent_messages=3)
    agent, model = make_agent([overflow(), "THE SUMMARY", "Done."], messages=before, conversation_manager=manager)

    agent(None)

    request = model.requests[1]
    assert request.purpose == "summarize"
    assert_valid_history(request.messages)
    assert not any({"toolUse", "toolResult"} & set(block) for m in request.messages for block in m["content"])
    assert request.tool_specs == ()
    assert "result of 0-a" in request.messages[0]["content"][0]["text"]


def test_a_run_whose_pairs_lie_across_the_cut(make_agent):
    """Words and results in one message, a lone answer, calls of one and of two tools."""
    mixed = parallel(2)
    mixed[1] = {**mixed[1], "content": [*mixed[1]["content"], {"text": "and this"}]}
    before = [
        user("task"), *parallel(0), {"role": "assistant", "content": [{"text": "so far so good " * 20}]}, user("next"),
        *parallel(1), *mixed, *parallel(3), *parallel(4),
    ]  # fmt: skip
    for recent in range(1, 9):
        for ratio in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            manager = SummarizingConversationManager(summary_ratio=ratio, preserve_recent_messages=recent)
            script = [overflow(), "THE SUMMARY", "Done."]
            agent, model = make_agent(script, messages=before, conversation_manager=manager)

            agent(None)

            assert_valid_history(model.requests[-1].messages)
            assert ids_in(agent.messages, "toolUse") == ids_in(agent.messages, "toolResult")


def test_a_pinned_turn_of_parallel_calls_stays_whole(make_agent):
    before = [user("task"), *(message for i in range(8) for message in parallel(i))]
    before[4] = {**before[4], "metadata": {"custom": {"pinned": True}}}  # the results; their calls come along
    manager = SummarizingConversationManager(summary_ratio=0.8, preserve_recent_messages=3)
    agent, _ = make_agent([overflow(), "THE SUMMARY", "Done."], messages=before, conversation_manager=manager)

    agent(None)

    assert_valid_history(agent.messages)
    assert ids_in(agent.messages, "toolUse")[:2] == ["1-a", "1-b"]
