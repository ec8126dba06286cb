"""Interrupts: questions of callbacks, tools and sub-agents to the agent's caller (conformance 97 to 106)."""

from __future__ import annotations

import copy

import pytest

from ropewalk import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    ToolContext,
    tool,
)
from ropewalk_testing import ScriptedModel, assert_valid_history, use


@pytest.fixture
def deleted():
    return []


@pytest.fixture
def delete(deleted):
    """A tool with an effect."""

    @tool
    def delete(path: str) -> str:
        """Deletes."""
        deleted.append(path)
        return f"deleted {path}"

    return delete


@pytest.fixture
def answer():
    """Makes the prompt that answers interrupts: `answer({interrupt: response})`."""

    def make(*pairs):
        return [{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in pairs]

    return make


def approve(event: BeforeToolCallEvent):
    """Asks before every tool call."""
    if event.interrupt("approve", {"path": event.tool_use["input"].get("path")}) != "yes":
        event.cancel_tool = "not approved"


DELETE = use("delete", {"path": "a"}, id="T1")

# -- asking --------------------------------------------------------------------------------------------------------


def test_an_interrupt_before_a_tool_call_ends_the_call_of_the_agent(ask, make_agent, delete, deleted, shape):
    """Conformance 97."""
    agent, model = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])

    result = ask(agent, "go")

    assert (result.stop_reason, model.calls, deleted) == ("interrupt", 1, [])
    (question,) = result.interrupts
    assert (question.name, question.reason, question.response) == ("approve", {"path": "a"}, None)
    assert question.id.startswith("v1:before_tool_call:T1:")
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [DELETE])]
    assert result.message == agent.messages[-1]


def test_the_ids_are_the_same_in_every_run_of_the_same_question(ask, make_agent, delete):
    """Conformance 97."""
    ids = []
    for _ in range(2):
        agent, _ = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])
        ids.append(ask(agent, "go").interrupts[0].id)
        ids.append(ask(agent, []).interrupts[0].id)

    assert len(set(ids)) == 1


@pytest.mark.parametrize(("response", "ran"), [("yes", ["a"]), ("no", [])])
def test_the_answer_reaches_the_callback_and_the_model_is_called_once_more(
    ask, make_agent, delete, deleted, answer, tool_results, response, ran
):
    """Conformance 98."""
    agent, model = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])
    (question,) = ask(agent, "go").interrupts

    result = ask(agent, answer((question, response)))

    assert (result.stop_reason, str(result), model.calls, deleted) == ("end_turn", "done\n", 2, ran)
    (told,) = tool_results(agent.messages)
    assert told["content"] == [{"text": "deleted a" if ran else "not approved"}]
    assert_valid_history(agent.messages)


def test_a_known_answer_is_given_at_once(ask, make_agent, delete, deleted):
    agent, _ = make_agent([DELETE, "done"], tools=[delete])
    seen = []
    agent.add_hook(lambda event: seen.append(event.interrupt("approve", response="known")), BeforeToolCallEvent)

    assert ask(agent, "go").stop_reason == "end_turn"
    assert (seen, deleted) == (["known"], ["a"])


def test_interrupting_before_the_tools_runs_none_of_them(ask, make_agent, delete, deleted, answer):
    agent, model = make_agent([[DELETE, use("delete", {"path": "b"}, id="T2")], "done"], tools=[delete])
    agent.add_hook(lambda event: event.interrupt("all of them?"), BeforeToolsEvent)

    (question,) = ask(agent, "go").interrupts
    assert question.id.startswith("v1:before_tools:")
    assert deleted == []

    assert ask(agent, answer((question, True))).stop_reason == "end_turn"
    assert (sorted(deleted), model.calls) == (["a", "b"], 2)


@pytest.mark.parametrize(
    "kind", [BeforeInvocationEvent, AfterInvocationEvent, BeforeModelCallEvent, AfterToolCallEvent, AfterToolsEvent]
)
def test_other_events_have_no_interrupt(ask, make_agent, delete, kind):
    agent, _ = make_agent([DELETE, "done"], tools=[delete])
    agent.add_hook(lambda event: event.interrupt("x"), kind)

    with pytest.raises(AttributeError, match="interrupt"):
        ask(agent, "go")

    assert_valid_history(agent.messages)


def test_the_events_of_a_pause_and_of_going_on(ask, make_agent, delete, answer):
    agent, _ = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])
    seen = []
    kinds = [
        BeforeInvocationEvent,
        BeforeToolsEvent,
        BeforeToolCallEvent,
        AfterToolCallEvent,
        AfterToolsEvent,
        AfterInvocationEvent,
    ]
    agent.add_hook(lambda event: seen.append(type(event).__name__.removesuffix("Event")), kinds, order=-1)
    agent.add_hook(lambda event: seen.append(event.result.stop_reason), AfterInvocationEvent)
    around = ["AfterTools", "AfterInvocation"]

    (question,) = ask(agent, "go").interrupts
    assert seen == ["BeforeInvocation", "BeforeTools", "BeforeToolCall", *around, "interrupt"]

    seen.clear()
    ask(agent, answer((question, "yes")))
    assert seen == ["BeforeInvocation", "BeforeTools", "BeforeToolCall", "AfterToolCall", *around, "end_turn"]


# -- answering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ("yes", TypeError),
        (None, TypeError),
        ({"interruptResponse": {}}, TypeError),
        ([{"text": "yes"}], TypeError),
        ([{"interruptResponse": {"interruptId": "v1:unknown", "response": "yes"}}], KeyError),
    ],
)
def test_what_is_no_answer_is_refused_and_changes_nothing(ask, make_agent, delete, deleted, answer, prompt, error):
    """Conformance 100."""
    agent, model = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])
    (question,) = ask(agent, "go").interrupts
    before = copy.deepcopy(list(agent.messages))

    with pytest.raises(error):
        ask(agent, prompt)

    assert (list(agent.messages), model.calls, deleted) == (before, 1, [])
    assert str(ask(agent, answer((question, "yes")))) == "done\n"
    assert deleted == ["a"]


def test_two_interrupts_of_a_tool_come_one_after_the_other(ask, make_agent, answer, tool_results):
    """Conformance 101."""
    starts = []

    @tool(context=True)
    def book(tool_context: ToolContext) -> str:
        """Books."""
        starts.append(1)
        return f"{tool_context.interrupt('day', 'Which day?')} at {tool_context.interrupt('hour', 'Which hour?')}"

    agent, model = make_agent([use("book", {}, id="T1"), "done"], tools=[book])

    (day,) = ask(agent, "go").interrupts
    assert (day.name, day.reason) == ("day", "Which day?")
    assert day.id.startswith("v1:tool_call:T1:")
    (hour,) = ask(agent, answer((day, "Monday"))).interrupts
    assert (hour.name, model.calls) == ("hour", 1)
    ask(agent, answer((hour, 9)))

    assert (len(starts), model.calls) == (3, 2)
    assert tool_results(agent.messages)[0]["content"] == [{"text": "Monday at 9"}]


def test_several_callbacks_of_one_event_are_asked_together(ask, make_agent, delete, deleted, answer):
    heard = {}

    def asks(name):
        def callback(event: BeforeToolCallEvent):
            heard[name] = event.interrupt(name)

        return callback

    agent, _ = make_agent([DELETE, "done"], tools=[delete], hooks=[asks("legal"), asks("finance")])

    legal, finance = ask(agent, "go").interrupts
    assert (legal.name, finance.name) == ("legal", "finance")
    (still,) = ask(agent, answer((finance, "fine"))).interrupts
    assert (still, deleted) == (legal, [])

    ask(agent, answer((legal, "fine too")))
    assert (heard, deleted) == ({"legal": "fine too", "finance": "fine"}, ["a"])


def test_a_name_that_two_callbacks_of_an_event_use_is_an_error(ask, make_agent, delete, deleted):
    """Conformance 103."""

    def other(event: BeforeToolCallEvent):
        event.interrupt("approve")

    agent, _ = make_agent([DELETE, "done"], tools=[delete], hooks=[approve, other])

    with pytest.raises(ValueError, match="'approve'"):
        ask(agent, "go")

    assert deleted == []
    assert_valid_history(agent.messages)
    assert agent.suspension is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_callback_that_stops_the_call_with_the_answer_leaves_the_agent_waiting(
    ask, make_agent, delete, deleted, answer, tool_results, fails
):
    def closed(event: BeforeInvocationEvent):
        if event.invocation_state.get("closed") and fails:
            raise LookupError("closed")

        event.cancel = bool(event.invocation_state.get("closed"))

    def approve_first(event: BeforeToolCallEvent):
        if event.tool_use["toolUseId"] == "T1":
            event.interrupt("approve")

    turn = [DELETE, use("delete", {"path": "b"}, id="T2")]
    agent, model = make_agent([turn, "done"], tools=[delete], hooks=[closed, approve_first])
    (question,) = ask(agent, "go").interrupts
    assert deleted == ["b"]

    if fails:
        with pytest.raises(LookupError):
            ask(agent, answer((question, True)), invocation_state={"closed": True})
    else:
        denied = ask(agent, answer((question, True)), invocation_state={"closed": True})
        assert str(denied) == "invocation denied by hook\n"

    assert (deleted, len(agent.messages)) == (["b"], 2)
    assert str(ask(agent, answer((question, True)))) == "done\n"
    assert (deleted, model.calls) == (["b", "a"], 2)
    assert [each["content"][0]["text"] for each in tool_results(agent.messages)] == ["deleted a", "deleted b"]


# -- beside a pause ------------------------------------------------------------------------------------------------


def test_tools_cannot_be_called_directly_while_the_agent_waits(ask, make_agent, delete, deleted, answer):
    """Conformance 104."""
    agent, _ = make_agent([DELETE, "done"], tools=[delete], hooks=[approve])
    (question,) = ask(agent, "go").interrupts

    with pytest.raises(RuntimeError, match="cannot directly call tool during interrupt"):
        agent.tool.delete(path="b")

    ask(agent, answer((question, "yes")))
    assert deleted == ["a"]


def test_a_callback_cannot_interrupt_a_direct_call(make_agent, delete, deleted):
    agent, _ = make_agent([], tools=[delete], hooks=[approve])

    with pytest.raises(RuntimeError, match="direct call"):
        agent.tool.delete(path="b")

    assert deleted == []
    assert agent.suspension is None


@pytest.mark.parametrize("asker", ["tool", "sub-agent"])
def test_in_a_run_beside_another_one_nobody_can_answer(make_agent, tool_results, result_text, asker):
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        """Asks."""
        return tool_context.interrupt("q")

    @tool(context=True)
    async def beside(tool_context: ToolContext) -> str:
        """Calls the agent beside the run that it is part of."""
        return str(await tool_context.agent.invoke_async("inner"))

    child, _ = make_agent([use("asks", {}, id="C1"), "never"], name="child", tools=[asks])
    asking = use("asks", {}, id="I1") if asker == "tool" else use("child", {"input": "go"}, id="I1")

    def model(request):
        last = request.messages[-1]["content"][-1]
        if "text" in last:
            return asking if last["text"] == "inner" else use("beside", {}, id="O1")

        return f"after {last['toolResult']['toolUseId']}"

    agent, _ = make_agent(
        ScriptedModel(model), tools=[asks, beside, child], concurrent_invocation_mode="unsafe_reentrant"
    )

    result = agent("outer")

    assert (result.stop_reason, str(result), agent.suspension) == ("end_turn", "after O1\n", None)
    (told,) = [each for each in tool_results(agent.messages) if each["toolUseId"] == "I1"]
    assert told["status"] == "error"
    assert "nobody can answer" in result_text(told)
    assert_valid_history(agent.messages)


# -- sub-agents ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preserve_context", [False, True])
def test_the_interrupt_of_a_sub_agents_tool_reaches_the_caller_and_the_answer_the_tool(
    ask, make_agent, answer, tool_results, preserve_context
):
    """Conformance 106."""

    @tool(context=True)
    def delete(path: str, tool_context: ToolContext) -> str:
        """Deletes."""
        return f"{path}: {tool_context.interrupt('sure', {'path': path})}"

    child, child_model = make_agent([use("delete", {"path": "a"}, id="C1"), "cleaned up"], name="child", tools=[delete])
    agent, model = make_agent(
        [use("child", {"input": "clean up"}, id="T1"), "done"],
        tools=[child.as_tool(preserve_context=preserve_context)],
    )

    result = ask(agent, "go")
    (question,) = result.interrupts
    assert (result.stop_reason, question.name, question.reason) == ("interrupt", "sure", {"path": "a"})
    assert question.id.startswith("v1:agent_as_tool:T1:v1:tool_call:C1:")

    assert str(ask(agent, answer((question, "yes")))) == "done\n"
    assert (model.calls, child_model.calls) == (2, 2)
    assert tool_results(child_model.requests[-1].messages)[0]["content"] == [{"text": "a: yes"}]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "cleaned up"}]
