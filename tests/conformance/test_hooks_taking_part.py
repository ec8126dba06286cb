"""Hooks: what callbacks change (lines 85 to 94)."""

from __future__ import annotations

import pytest

from ropewalk import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    MessageAddedEvent,
    tool,
)
from ropewalk_testing import assert_valid_history, turn, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


ASKING = use("add", {"a": 3, "b": 4}, id="A")


# -- invocations -------------------------------------------------------------------------------------------------------


def test_messages_put_in_the_place_of_the_input_are_used(ask, make_agent, shape):
    agent, model = make_agent(["Hello."])

    def replace(event: BeforeInvocationEvent):
        assert event.messages == [{"role": "user", "content": [{"text": "secret"}]}]
        event.messages = [{"role": "user", "content": [{"text": "(redacted)"}]}]

    agent.add_hook(replace)
    ask(agent, "secret")

    assert shape(agent.messages)[0] == ("user", [{"text": "(redacted)"}])
    assert shape(model.requests[0].messages) == [("user", [{"text": "(redacted)"}])]


def test_messages_changed_in_place_are_used_and_the_callers_own_are_untouched(ask, make_agent, shape):
    agent, _ = make_agent(["Hello."])
    given = [{"text": "secret"}]

    def change(event: BeforeInvocationEvent):
        event.messages[0]["content"][0]["text"] = "(redacted)"

    agent.add_hook(change)
    ask(agent, given)

    assert shape(agent.messages)[0] == ("user", [{"text": "(redacted)"}])
    assert given == [{"text": "secret"}]


@pytest.mark.parametrize(("cancel", "text"), [("not today", "not today"), (True, "invocation denied by hook")])
def test_a_cancelled_invocation_answers_with_the_text_and_calls_no_model(ask, make_agent, cancel, text):
    agent, model = make_agent(["Hello."])
    ended = []

    def refuse(event: BeforeInvocationEvent):
        event.cancel = cancel

    def end(event: AfterInvocationEvent):
        ended.append(event.result)
        event.resume = "again"

    agent.add_hook(refuse)
    agent.add_hook(end)
    result = ask(agent, "Hi.")

    assert (result.stop_reason, str(result)) == ("end_turn", f"{text}\n")
    assert (model.calls, list(agent.messages), ended) == (0, [], [None])


def test_resume_runs_again_and_the_last_result_is_the_callers(ask, make_agent, shape):
    agent, model = make_agent(["one", "two", "three"])
    events = []

    def resume(event: AfterInvocationEvent):
        events.append(str(event.result))
        event.resume = {"one\n": "go on", "two\n": [{"text": "and on"}]}.get(str(event.result))

    agent.add_hook(resume)
    agent.add_hook(lambda event: events.append(event.messages[0]["content"][0]["text"]), BeforeInvocationEvent)
    result = ask(agent, "start")

    assert str(result) == "three\n"
    assert events == ["start", "one\n", "go on", "two\n", "and on", "three\n"]
    assert [text for _, [text] in shape(agent.messages)] == [
        {"text": text} for text in ("start", "one", "go on", "two", "and on", "three")
    ]
    assert model.calls == 3


def test_one_result_is_streamed_when_a_hook_resumes(make_agent, events_of):
    agent, _ = make_agent(["one", "two"])

    def resume(event: AfterInvocationEvent):
        event.resume = "go on" if str(event.result) == "one\n" else None

    agent.add_hook(resume)
    results = [event["result"] for event in events_of(agent, "start") if "result" in event]

    assert [str(result) for result in results] == ["two\n"]


def test_a_cancelled_run_is_not_resumed(ask, make_agent):
    agent, model = make_agent(["one"])

    def resume(event: AfterInvocationEvent):
        event.resume = "again"

    agent.add_hook(resume)
    agent.cancel()

    assert ask(agent, "start").stop_reason == "cancelled"
    assert model.calls == 0


# -- the model ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cancel", "text"), [("no", "no"), (True, "model call denied by hook")])
def test_a_cancelled_model_call_answers_with_the_text_and_costs_nothing(ask, make_agent, shape, cancel, text):
    agent, model = make_agent(["Hello."])
    said = []

    def refuse(event: BeforeModelCallEvent):
        event.cancel = cancel

    agent.add_hook(refuse)
    agent.add_hook(lambda event: said.append((event.stop_response.stop_reason, event.exception)), AfterModelCallEvent)
    result = ask(agent, "Hi.")

    assert (result.stop_reason, str(result), model.calls) == ("end_turn", f"{text}\n", 0)
    assert shape(agent.messages) == [("user", [{"text": "Hi."}]), ("assistant", [{"text": text}])]
    assert result.metrics.accumulated_usage["totalTokens"] == 0
    assert said == [("end_turn", None)]


def test_an_answer_is_dropped_and_asked_for_again_and_its_usage_counts(ask, make_agent):
    agent, model = make_agent([turn("bad", usage=(5, 1)), turn("good", usage=(5, 2))])

    def retry(event: AfterModelCallEvent):
        event.retry = event.stop_response.message["content"] == [{"text": "bad"}]

    agent.add_hook(retry)
    result = ask(agent, "Hi.")

    assert (str(result), model.calls, len(agent.messages)) == ("good\n", 2, 2)
    assert result.metrics.accumulated_usage["totalTokens"] == 13


def test_a_failed_call_is_tried_again_when_a_hook_says_so(ask, make_agent):
    agent, model = make_agent([ValueError("flaky"), "Hello."], retry_strategy=None)
    seen = []

    def retry(event: AfterModelCallEvent):
        seen.append((repr(event.exception), event.stop_response is None))
        event.retry = isinstance(event.exception, ValueError)

    agent.add_hook(retry)

    assert str(ask(agent, "Hi.")) == "Hello.\n"
    assert seen == [("ValueError('flaky')", True), ("None", False)]
    assert model.calls == 2


def test_the_tokens_of_the_request_are_estimated_when_a_hook_asks(ask, make_agent):
    agent, _ = make_agent(["Hello."])
    seen = []
    agent.add_hook(lambda event: seen.append(event.projected_input_tokens), BeforeModelCallEvent)

    ask(agent, "x" * 400)

    assert seen == [100]


# -- tools -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cancel", "text"), [("not these", "not these"), (True, "Tool cancelled by hook")])
def test_a_cancelled_batch_answers_every_use_with_the_text(ask, make_agent, tool_results, cancel, text):
    agent, _ = make_agent([[ASKING, use("multiply", {"a": 1, "b": 2}, id="B")], "Fine."], tools=[add, multiply])
    called = []

    def refuse(event: BeforeToolsEvent):
        called.append([block["toolUse"]["toolUseId"] for block in event.message["content"]])
        event.cancel = cancel

    agent.add_hook(refuse)
    agent.add_hook(lambda event: called.append(type(event)), [BeforeToolCallEvent, AfterToolsEvent])
    ask(agent, "Hi.")

    assert tool_results(agent.messages) == [
        {"toolUseId": use_id, "status": "error", "content": [{"text": text}]} for use_id in ("A", "B")
    ]
    assert called == [["A", "B"], AfterToolsEvent]


@pytest.mark.parametrize(("cancel", "text"), [("no adding", "no adding"), (True, "tool cancelled by user")])
def test_a_cancelled_tool_call_gets_one_error_result_with_the_text(ask, make_agent, tool_results, cancel, text):
    agent, _ = make_agent([[ASKING, use("multiply", {"a": 3, "b": 4}, id="B")], "Fine."], tools=[add, multiply])
    after = {}

    def refuse(event: BeforeToolCallEvent):
        if event.tool_use["name"] == "add":
            event.cancel_tool = cancel

    def note(event: AfterToolCallEvent):
        after[event.tool_use["name"]] = (event.cancel_message, event.selected_tool, event.duration is None)

    agent.add_hook(refuse)
    agent.add_hook(note)
    ask(agent, "Hi.")

    assert tool_results(agent.messages) == [
        {"toolUseId": "A", "status": "error", "content": [{"text": text}]},
        {"toolUseId": "B", "status": "success", "content": [{"text": "12"}]},
    ]
    assert after == {"add": (text, None, True), "multiply": (None, multiply, False)}


def test_another_selected_tool_runs(ask, make_agent, tool_results, result_text):
    agent, _ = make_agent([ASKING, "Fine."], tools=[add])

    def swap(event: BeforeToolCallEvent):
        assert event.selected_tool is add
        event.selected_tool = multiply

    agent.add_hook(swap)
    ask(agent, "Hi.")

    assert [result_text(result) for result in tool_results(agent.messages)] == ["12"]


def test_another_name_selects_the_tool_of_that_name_and_the_history_keeps_what_was_asked_for(
    ask, make_agent, tool_results, result_text, shape
):
    agent, _ = make_agent([ASKING, "Fine."], tools=[add, multiply])
    ran = []

    def rename(event: BeforeToolCallEvent):
        event.tool_use["name"] = "multiply"
        event.tool_use["input"]["b"] = 10

    agent.add_hook(rename)
    agent.add_hook(lambda event: ran.append((event.selected_tool, event.tool_use["input"])), AfterToolCallEvent)
    ask(agent, "Hi.")

    assert [result_text(result) for result in tool_results(agent.messages)] == ["30"]
    assert ran == [(multiply, {"a": 3, "b": 10})]
    assert shape(agent.messages)[1][1] == [ASKING]


def test_a_name_that_no_tool_has_gets_an_error_result(ask, make_agent, tool_results, result_text):
    agent, _ = make_agent([ASKING, "Fine."], tools=[add])

    def rename(event: BeforeToolCallEvent):
        event.tool_use = {**event.tool_use, "name": "divide"}

    agent.add_hook(rename)
    ask(agent, "Hi.")

    assert [result_text(result) for result in tool_results(agent.messages)] == ["Unknown tool: divide"]


def test_a_replaced_result_is_what_the_model_sees(ask, make_agent, tool_results):
    agent, model = make_agent([ASKING, "Fine."], tools=[add])

    def replace(event: AfterToolCallEvent):
        event.result = {"toolUseId": "A", "status": "success", "content": [{"text": "(hidden)"}]}

    agent.add_hook(replace)
    ask(agent, "Hi.")

    expected = [{"toolUseId": "A", "status": "success", "content": [{"text": "(hidden)"}]}]
    assert tool_results(model.requests[1].messages) == tool_results(agent.messages) == expected


def test_a_tool_call_is_repeated_when_a_hook_says_so_and_has_one_result(ask, make_agent, tool_results, result_text):
    attempts = []

    @tool
    def flaky() -> str:
        """Fails at first."""
        attempts.append(1)
        if len(attempts) < 3:
            raise RuntimeError("not yet")

        return "at last"

    agent, _ = make_agent([use("flaky", {}, id="A"), "Fine."], tools=[flaky])
    before = []

    def retry(event: AfterToolCallEvent):
        event.retry = event.result["status"] == "error"

    agent.add_hook(retry)
    agent.add_hook(before.append, BeforeToolCallEvent)
    ask(agent, "Hi.")

    assert [result_text(result) for result in tool_results(agent.messages)] == ["at last"]
    assert len(attempts) == len(before) == 3


@pytest.mark.parametrize(
    ("end_turn", "content"),
    [
        ("That is all.", [{"text": "That is all."}]),
        ([{"text": "Block."}], [{"text": "Block."}]),
        (True, [{"text": "Turn ended early by hook after tool execution"}]),
    ],
)
def test_the_turn_ends_with_the_given_answer_after_the_tools(ask, make_agent, shape, end_turn, content):
    agent, model = make_agent([ASKING, "never said"], tools=[add])
    told = []

    def end(event: AfterToolsEvent):
        assert event.message["content"][0]["toolResult"]["content"] == [{"text": "7"}]
        event.end_turn = end_turn

    agent.add_hook(end)
    agent.add_hook(lambda event: told.append(event.message["content"]), MessageAddedEvent)
    result = ask(agent, "Hi.")

    assert (result.stop_reason, result.message["content"], model.calls) == ("end_turn", content, 1)
    assert shape(agent.messages)[-1] == ("assistant", content)
    assert told[-1] == content
    assert_valid_history(agent.messages)
