"""Loop and messages: what stays in the history when a call fails, is denied, limited or cut (conformance 22 to 31)."""

from __future__ import annotations

import pytest

from ropewalk import hookimpl, tool
from ropewalk.errors import HistoryError, MaxTokensReachedException, ModelError
from ropewalk.kits.calls.invocation import Denied
from ropewalk.kits.calls.outcomes import Stop
from ropewalk_testing import assert_valid_history, text, turn, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def raw_turn(*deltas, stop="end_turn", extra=()):
    """A model turn of one block per list of deltas."""
    events = [{"messageStart": {"role": "assistant"}}]
    for index, pieces in enumerate(deltas):
        events.append({"contentBlockStart": {"contentBlockIndex": index, "start": {}}})
        events += [{"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}} for piece in pieces]
        events.append({"contentBlockStop": {"contentBlockIndex": index}})

    return turn(raw=[*events, *extra, {"messageStop": {"stopReason": stop}}])


# -- failed, denied, limited -------------------------------------------------------------------------------------


def test_a_call_that_fails_at_once_leaves_the_history_as_it_was(ask, make_agent, shape):
    """Conformance 22 (B)."""
    agent, model = make_agent(["fine", ModelError("down"), "back"])
    ask(agent, "one")
    before = shape(agent.messages)

    with pytest.raises(ModelError, match="down"):
        ask(agent, "two")

    assert shape(agent.messages) == before
    ask(agent, "three")
    assert_valid_history(agent.messages)
    assert shape(model.requests[2].messages) == [*before, ("user", [{"text": "three"}])]


def test_a_first_call_that_fails_leaves_an_empty_history(ask, make_agent):
    """Conformance 22 (B)."""
    agent, _ = make_agent([ModelError("down"), "back"])

    with pytest.raises(ModelError):
        ask(agent, "one")

    assert list(agent.messages) == []


def test_a_failed_call_leaves_a_turn_that_it_found_open(ask, make_agent, shape):
    """Conformance 22 (B)."""
    agent, _ = make_agent([ModelError("down"), "back"], messages=[{"role": "user", "content": [{"text": "first"}]}])

    with pytest.raises(ModelError):
        ask(agent, "second")

    assert shape(agent.messages) == [("user", [{"text": "first"}])]
    ask(agent, "third")
    assert shape(agent.messages[:1]) == [("user", [{"text": "first"}, {"text": "third"}])]


def test_a_denied_call_stores_nothing_and_answers_with_the_reason(ask, make_agent):
    """Conformance 22 (B)."""

    class Deny:
        name = "deny"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            return Denied("not today")

    agent, model = make_agent(["never"], plugins=[Deny()])

    result = ask(agent, "please")

    assert (result.stop_reason, str(result)) == ("end_turn", "not today\n")
    assert (model.calls, list(agent.messages)) == (0, [])


@pytest.mark.parametrize("cycle_of_the_stop", [0, 1, 2])
def test_a_limited_call_leaves_a_history_that_the_next_prompt_fits(ask, make_agent, cycle_of_the_stop):
    """Conformance 22 (B)."""

    class Limit:
        name = "limit"
        on = True

        @hookimpl
        async def decide_stop(self, cycle):
            return Stop("limit_turns") if self.on and cycle.index == cycle_of_the_stop else None

    limit = Limit()
    turns = [use("add", {"a": 1, "b": 2}) for _ in range(cycle_of_the_stop)]
    agent, model = make_agent([*turns, "done"], tools=[add], plugins=[limit])

    result = ask(agent, "first")

    assert (result.stop_reason, model.calls) == ("limit_turns", cycle_of_the_stop)
    limit.on = False
    assert str(ask(agent, "second")) == "done\n"
    assert_valid_history(model.requests[-1].messages)
    assert_valid_history(agent.messages)


def test_a_history_that_starts_with_the_assistant_is_sent_with_a_user_turn_before_it(ask, make_agent):
    """Conformance 22 (B)."""
    agent, model = make_agent(["ok"], messages=[{"role": "assistant", "content": [{"text": "Welcome!"}]}])

    ask(agent, "thanks")

    sent = model.requests[0].messages
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[0]["content"][0]["text"].strip()
    assert sent[1]["content"] == [{"text": "Welcome!"}]


def test_an_error_after_a_tool_turn_keeps_the_answered_tool_use(ask, make_agent, shape):
    """Conformance 31."""
    agent, model = make_agent([use("add", {"a": 1, "b": 2}, id="T1"), ModelError("down"), "back"], tools=[add])

    with pytest.raises(ModelError, match="down"):
        ask(agent, "go")

    assert [role for role, _ in shape(agent.messages)] == ["user", "assistant", "user"]
    assert_valid_history(agent.messages)
    ask(agent, "go on")
    assert_valid_history(agent.messages)
    blocks = agent.messages[2]["content"]
    assert [next(iter(block)) for block in blocks] == ["toolResult", "text"]
    assert blocks[1] == {"text": "go on"}
    assert shape(model.requests[2].messages) == shape(agent.messages[:3])


def test_the_same_model_error_is_the_same_error_in_every_cycle(ask, make_agent):
    """Conformance 31."""
    caught = []
    for turns in ([ModelError("down")], [use("add", {"a": 1, "b": 2}), ModelError("down")]):
        agent, _ = make_agent(turns, tools=[add])
        with pytest.raises(ModelError) as error:
            ask(agent, "go")
        caught.append((type(error.value), str(error.value)))

    assert caught[0] == caught[1] == (ModelError, "down")


# -- edits by the caller -----------------------------------------------------------------------------------------


def test_the_history_can_be_edited_between_calls(ask, make_agent, shape):
    """Conformance 22 (B)."""
    agent, model = make_agent(["one", "two", "three"])
    ask(agent, "a")
    del agent.messages[:]
    ask(agent, "b")
    agent.messages.append({"role": "user", "content": [{"text": "c"}]})
    agent.messages[0] = {"role": "user", "content": [{"text": "B"}]}
    ask(agent, None)

    assert shape(model.requests[2].messages) == [
        ("user", [{"text": "B"}]),
        ("assistant", [{"text": "two"}]),
        ("user", [{"text": "c"}]),
    ]
    assert_valid_history(agent.messages)


def test_the_history_can_be_replaced_between_calls(ask, make_agent, shape):
    """Conformance 22 (B)."""
    agent, model = make_agent(["one", "two"])
    ask(agent, "a")
    agent.messages = [{"role": "user", "content": [{"text": "fresh"}]}]
    ask(agent, None)

    assert shape(model.requests[1].messages) == [("user", [{"text": "fresh"}])]


def test_an_edit_into_no_message_is_refused_at_the_next_call(ask, make_agent):
    """Conformance 22 (B)."""
    agent, model = make_agent(["one", "two"])
    ask(agent, "a")

    with pytest.raises(HistoryError):  # noqa: PT012 - when it is noticed, at the edit or at the call, is open
        agent.messages.append("no message")
        ask(agent, "b")

    assert model.calls == 1


def test_an_edit_during_a_run_is_refused(ask, make_agent):
    """Conformance 22 (B)."""
    refused = []

    @tool
    def edit() -> str:
        """Edits the history of its own agent."""
        try:
            agent.messages.append({"role": "user", "content": [{"text": "x"}]})
        except HistoryError as error:
            refused.append(str(error))
        return "tried"

    agent, _ = make_agent([use("edit", {}), "ok"], tools=[edit])

    ask(agent, "go")

    assert len(refused) == 1
    assert len(agent.messages) == 4


# -- stop reasons ------------------------------------------------------------------------------------------------


def test_an_answer_cut_at_the_token_limit_is_an_error_and_its_text_stays(ask, make_agent, shape):
    """Conformance 23."""
    agent, _ = make_agent([turn("once upon a", stop="max_tokens"), "ok"])

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "a story")

    assert shape(agent.messages) == [("user", [{"text": "a story"}]), ("assistant", [{"text": "once upon a"}])]
    ask(agent, "go on")
    assert_valid_history(agent.messages)


def test_a_tool_use_cut_at_the_token_limit_becomes_text_and_is_not_run(ask, make_agent, recorder):
    """Conformance 23."""
    cut = turn(text("let me see"), use("note", {"value": 1}), stop="max_tokens")
    agent, model = make_agent([cut, "ok"], tools=[recorder])

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert recorder.runs == []
    content = agent.messages[-1]["content"]
    assert [next(iter(block)) for block in content] == ["text", "text"]
    assert "note" in content[1]["text"]
    assert model.calls == 1
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened", "stop_sequence", "a_new_word"])
def test_the_providers_stop_reason_is_the_results(ask, make_agent, reason):
    """Conformance 24."""
    agent, _ = make_agent([turn("I may not say", stop=reason)])

    result = ask(agent, "go")

    assert (result.stop_reason, str(result)) == (reason, "I may not say\n")


# -- blocks that providers refuse later --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty", [raw_turn([{"text": ""}]), raw_turn(), raw_turn([{"text": "  \n"}]), raw_turn([], [])],
    ids=["empty text", "no block", "blank text", "blocks without deltas"],
)  # fmt: skip
def test_an_empty_answer_is_sent_later_as_a_placeholder(ask, make_agent, empty):
    """Conformance 26."""
    agent, model = make_agent([empty, "ok"])

    assert ask(agent, "go").stop_reason == "end_turn"
    ask(agent, "again")

    sent = model.requests[1].messages
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"]
    assert all(block["text"].strip() for block in sent[1]["content"])


def test_empty_text_beside_a_tool_use_is_not_sent(ask, make_agent):
    """Conformance 26."""
    agent, model = make_agent([[text(""), use("add", {"a": 1, "b": 2})], "ok"], tools=[add])

    ask(agent, "go")

    sent = model.requests[1].messages[1]["content"]
    assert all(block.get("text", "x").strip() for block in sent)
    assert any("toolUse" in block for block in sent)


# -- guardrails --------------------------------------------------------------------------------------------------


def test_a_guardrail_replaces_the_text_of_the_last_user_message(ask, make_agent, shape):
    """Conformance 27."""
    redact = {"redactContent": {"redactUserContentMessage": "[user input redacted]"}}
    blocked = raw_turn([{"text": "I cannot help."}], stop="guardrail_intervened", extra=[redact])
    agent, model = make_agent(["fine", blocked, "ok"])
    ask(agent, "harmless")

    result = ask(agent, "my secret")

    assert result.stop_reason == "guardrail_intervened"
    assert shape(agent.messages)[2] == ("user", [{"text": "[user input redacted]"}])
    assert shape(agent.messages)[0] == ("user", [{"text": "harmless"}])
    ask(agent, "next")
    assert "my secret" not in repr(model.requests[2].messages)


def test_a_guardrail_replaces_the_answer(ask, make_agent, shape):
    """Conformance 27."""
    redact = {"redactContent": {"redactAssistantContentMessage": "[answer redacted]"}}
    agent, _ = make_agent([raw_turn([{"text": "bad words"}], stop="guardrail_intervened", extra=[redact])])

    result = ask(agent, "go")

    assert shape(agent.messages)[1] == ("assistant", [{"text": "[answer redacted]"}])
    assert str(result) == "[answer redacted]\n"


def test_a_redacted_tool_result_keeps_its_block(ask, make_agent, tool_results):
    """Conformance 28."""

    @tool
    def fetch() -> str:
        """Fetches."""
        return "the secret"

    redact = {"redactContent": {"redactUserContentMessage": "[redacted]"}}
    blocked = raw_turn([{"text": "no"}], stop="guardrail_intervened", extra=[redact])
    agent, _ = make_agent([[use("fetch", {}, id="T1"), use("fetch", {}, id="T2")], blocked], tools=[fetch])

    ask(agent, "go")

    assert [(r["toolUseId"], r["content"]) for r in tool_results(agent.messages)] == [
        ("T1", [{"text": "[redacted]"}]),
        ("T2", [{"text": "[redacted]"}]),
    ]
    assert agent.messages[0]["content"] == [{"text": "go"}]
    assert_valid_history(agent.messages)


# -- reasoning ---------------------------------------------------------------------------------------------------


def test_thinking_and_its_signature_are_one_block(ask, make_agent):
    """Conformance 29."""
    thinking = [
        {"reasoningContent": {"text": "hm, "}},
        {"reasoningContent": {"text": "yes"}},
        {"reasoningContent": {"signature": "SIG"}},
    ]
    agent, model = make_agent([raw_turn(thinking, [{"text": "yes."}]), "ok"])

    result = ask(agent, "go")

    assert agent.messages[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm, yes", "signature": "SIG"}}},
        {"text": "yes."},
    ]
    assert str(result) == "yes.\n"
    ask(agent, "again")
    assert model.requests[1].messages[1]["content"] == agent.messages[1]["content"]
