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
    current_run,
    hookimpl,
)
from ropewalk.kits.calls.outcomes import Stop, ToolsOutcome
from ropewalk.kits.lifecycle import InterruptibleEvent
from ropewalk.kits.suspension import Interrupt, Suspend
from ropewalk_hooks import HookError, HookRegistry
from ropewalk_testing import assert_valid_history, use

ADD = use("add", {"a": 1, "b": 2}, id="T1")
TWO = [ADD, use("add", {"a": 3, "b": 4}, id="T2")]


def answers(*pairs):
    return [{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in pairs]


def asking(kind, name="q", of=None):
    """A callback that asks, of one tool use only when it is named, and keeps the answers."""

    def callback(event):
        if of is None or event.tool_use["toolUseId"] == of:
            callback.heard.append(event.interrupt(name))

    callback.heard = []
    return kind, callback


def asking_through_the_run(kind, name="q"):
    def callback(event):
        callback.heard.append(current_run().interrupt(name, of=event.__class__.__name__))

    callback.heard = []
    return kind, callback


def add_hooks(agent, *hooks):
    for kind, callback in hooks:
        agent.add_hook(callback, kind)


def texts(agent):
    """The results in the history."""
    blocks = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
    return [block["toolResult"]["content"][0]["text"] for block in blocks]


# -- asking ------------------------------------------------------------------------------------------------------------


async def test_async_callbacks_ask_too(make_agent):
    agent = make_agent(ADD, "done")
    heard = []

    async def callback(event: BeforeToolCallEvent):
        heard.append(event.interrupt("q", {"n": 1}))

    agent.add_hook(callback)
    (question,) = (await agent.invoke_async("go")).interrupts

    result = await agent.invoke_async(answers((question, {"deep": [1]})))

    assert (str(result), heard) == ("done\n", [{"deep": [1]}])


async def test_a_callback_may_ask_several_things_one_after_the_other(make_agent):
    agent = make_agent(ADD, "done")
    agent.add_hook(lambda event: (event.interrupt("one"), event.interrupt("two")), BeforeToolCallEvent)

    (one,) = (await agent.invoke_async("go")).interrupts
    (two,) = (await agent.invoke_async(answers((one, 1)))).interrupts

    assert (one.name, two.name) == ("one", "two")
    assert str(await agent.invoke_async(answers((two, 2)))) == "done\n"


async def test_questions_about_several_calls_have_ids_of_their_own(make_agent):
    agent = make_agent(TWO, "done")
    hook = asking(BeforeToolCallEvent)
    add_hooks(agent, hook)

    first, second = (await agent.invoke_async("go")).interrupts
    await agent.invoke_async(answers((second, "of T2"), (first, "of T1")))

    assert {first.id.split(":")[2], second.id.split(":")[2]} == {"T1", "T2"}
    assert sorted(hook[1].heard) == ["of T1", "of T2"]
    assert texts(agent) == ["3", "7"]


async def test_the_other_callbacks_of_the_event_are_called_before_the_run_pauses(make_agent):
    agent = make_agent(ADD, "done")
    seen = []
    add_hooks(agent, asking(BeforeToolCallEvent), (BeforeToolCallEvent, seen.append))

    await agent.invoke_async("go")

    assert len(seen) == 1


async def test_an_error_of_a_later_callback_counts_more_than_a_question(make_agent):
    agent = make_agent(ADD, "done")

    def guard(event):
        raise LookupError("no")

    add_hooks(agent, asking(BeforeToolCallEvent), (BeforeToolCallEvent, guard))

    with pytest.raises(LookupError):
        await agent.invoke_async("go")

    assert agent.suspension is None
    assert_valid_history(agent.messages)


async def test_an_error_of_another_callback_after_the_tools_counts_more_than_a_question(make_agent):
    agent = make_agent(ADD, "done")

    def guard(event):
        raise LookupError("no")

    add_hooks(agent, (AfterToolsEvent, guard), asking_through_the_run(AfterToolsEvent))

    with pytest.raises(LookupError):
        await agent.invoke_async("go")

    assert agent.suspension is None
    assert texts(agent) == ["3"]


@pytest.mark.parametrize("kind", [BeforeToolCallEvent, BeforeToolsEvent])
async def test_one_name_in_two_callbacks_is_an_error_that_names_them(make_agent, kind):
    agent = make_agent(ADD, "done")
    add_hooks(agent, asking(kind), asking(kind))

    with pytest.raises(HookError, match=r"asking.*callback.*both interrupt.*'q'"):
        await agent.invoke_async("go")

    assert_valid_history(agent.messages)


def test_an_event_that_no_run_has_made_cannot_interrupt():
    with pytest.raises(RuntimeError, match="BeforeToolsEvent is no part of a run"):
        BeforeToolsEvent(None, {}).interrupt("q")


def test_just_two_events_can_interrupt():
    assert {each.__name__ for each in InterruptibleEvent.__subclasses__()} == {
        "BeforeToolsEvent",
        "BeforeToolCallEvent",
    }


@pytest.mark.parametrize("name", ["", None, 3])
async def test_a_name_that_is_no_text_is_refused(make_agent, name):
    agent = make_agent(ADD, "done")
    add_hooks(agent, asking(BeforeToolCallEvent, name))

    with pytest.raises(ValueError, match="interrupt name"):
        await agent.invoke_async("go")


# -- what else is told -------------------------------------------------------------------------------------------------


async def test_after_the_tools_there_are_the_results_of_the_calls_that_have_ended(make_agent):
    agent = make_agent(TWO, "done")
    told = []
    add_hooks(
        agent,
        asking(BeforeToolCallEvent, of="T1"),
        (AfterToolsEvent, lambda event: told.append([b["toolResult"]["toolUseId"] for b in event.message["content"]])),
        (AfterToolCallEvent, lambda event: told.append(event.tool_use["toolUseId"])),
    )

    (question,) = (await agent.invoke_async("go")).interrupts
    assert told == ["T2", ["T2"]]
    await agent.invoke_async(answers((question, 1)))

    assert told == ["T2", ["T2"], "T1", ["T1", "T2"]]


async def test_a_call_whose_tool_asks_has_not_ended(make_agent):
    class Asking:
        tool_name = "asking"
        tool_spec = {"name": "asking", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def invoke(self, call):
            content = [{"text": call.interrupt("q")}]
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": content}

    agent = make_agent(use("asking", {}, id="T1"), "done", tools=[Asking()])
    told = []
    add_hooks(agent, (AfterToolCallEvent, lambda event: told.append(event.result["content"])))

    (question,) = (await agent.invoke_async("go")).interrupts
    assert told == []
    await agent.invoke_async(answers((question, "yes")))

    assert told == [[{"text": "yes"}]]


async def test_a_model_call_around_which_a_plugin_asks_has_not_ended(make_agent):
    class Asking:
        name = "asking"

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            current_run().interrupt("q", of="model")
            return outcome

    agent = make_agent("done", plugins=[Asking()])
    told = []
    add_hooks(agent, (AfterModelCallEvent, lambda event: told.append(event.exception)))

    (question,) = (await agent.invoke_async("go")).interrupts
    assert told == []
    assert str(await agent.invoke_async(answers((question, "yes")))) == "done\n"

    assert (told, agent.model.calls) == ([None], 1)


async def test_a_pause_before_the_tools_ends_what_began(make_agent):
    agent = make_agent(ADD, "done")
    told = []
    add_hooks(
        agent,
        (BeforeToolsEvent, lambda event: told.append(event.message["content"])),
        asking(BeforeToolsEvent),
        (AfterToolsEvent, lambda event: told.append(event.message["content"])),
    )

    (question,) = (await agent.invoke_async("go")).interrupts
    assert told == [[ADD], []]
    await agent.invoke_async(answers((question, 1)))

    assert told[2] == [ADD]
    assert len(told[3]) == 1


async def test_a_callback_cannot_resume_an_agent_that_waits(make_agent):
    agent = make_agent(ADD, "done")
    results = []

    def again(event):
        results.append(event.result.stop_reason)
        if len(results) == 1:
            event.resume = "something else"

    add_hooks(agent, asking(BeforeToolCallEvent), (AfterInvocationEvent, again))

    result = await agent.invoke_async("go")
    assert (result.stop_reason, results) == ("interrupt", ["interrupt"])

    assert str(await agent.invoke_async(answers((result.interrupts[0], 1)))) == "done\n"
    assert len([message for message in agent.messages if message["role"] == "user"]) == 2


async def test_input_that_a_callback_adds_to_a_run_that_goes_on_is_ignored_with_a_warning(make_agent, caplog):
    agent = make_agent(ADD, "done")

    def prefix(event):
        event.messages = [{"role": "user", "content": [{"text": "Be short."}]}, *event.messages]

    add_hooks(agent, asking(BeforeToolCallEvent), (BeforeInvocationEvent, prefix))
    (question,) = (await agent.invoke_async("go")).interrupts

    assert str(await agent.invoke_async(answers((question, 1)))) == "done\n"

    assert [m["content"] for m in agent.messages[:1]] == [[{"text": "Be short."}, {"text": "go"}]]
    assert "BeforeInvocationEvent.messages is ignored" in caplog.text


async def test_end_turn_of_a_paused_batch_does_not_end_the_turn(make_agent):
    agent = make_agent(ADD, "done")

    def end(event):
        event.end_turn = "over"

    add_hooks(agent, asking(BeforeToolCallEvent), (AfterToolsEvent, end))

    result = await agent.invoke_async("go")
    assert result.stop_reason == "interrupt"
    result = await agent.invoke_async(answers((result.interrupts[0], 1)))
    assert (result.stop_reason, str(result), texts(agent)) == ("end_turn", "over\n", ["3"])


# -- going on ----------------------------------------------------------------------------------------------------------


async def test_tools_refused_when_a_run_goes_on_keep_the_results_of_those_that_ran(make_agent):
    agent = make_agent(TWO, "done")
    refuse = []

    def cancel(event):
        event.cancel = bool(refuse)

    add_hooks(agent, (BeforeToolsEvent, cancel), asking(BeforeToolCallEvent, of="T1"))
    (question,) = (await agent.invoke_async("go")).interrupts
    refuse.append(1)

    assert str(await agent.invoke_async(answers((question, 1)))) == "done\n"

    assert texts(agent) == ["Tool cancelled by hook", "7"]


async def test_a_call_repeated_by_a_callback_asks_only_once(make_agent):
    agent = make_agent(ADD, "done")
    hook = asking(BeforeToolCallEvent)
    ends = []

    def again(event):
        ends.append(1)
        event.retry = len(ends) == 1

    add_hooks(agent, hook, (AfterToolCallEvent, again))
    (question,) = (await agent.invoke_async("go")).interrupts

    assert str(await agent.invoke_async(answers((question, "yes")))) == "done\n"
    assert (hook[1].heard, len(ends)) == (["yes", "yes"], 2)


@pytest.mark.parametrize(
    "kind",
    [
        BeforeInvocationEvent,
        BeforeModelCallEvent,
        AfterModelCallEvent,
        AfterToolCallEvent,
        AfterToolsEvent,
        AfterInvocationEvent,
    ],
)
async def test_any_callback_can_ask_through_the_run_and_nothing_is_done_twice(make_agent, kind):
    ran = []

    class Note:
        tool_name = "note"
        tool_spec = {"name": "note", "description": "Notes.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def invoke(self, call):
            ran.append(call.tool_use["toolUseId"])
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "noted"}]}

    agent = make_agent(use("note", {}, id="T1"), "done", tools=[Note()])
    hook = asking_through_the_run(kind)
    add_hooks(agent, hook)

    result = await agent.invoke_async("go")
    assert result.stop_reason == "interrupt"
    for _ in range(3):
        if result.stop_reason == "interrupt":
            result = await agent.invoke_async(answers((result.interrupts[0], "yes")))

    assert (str(result), ran, agent.model.calls) == ("done\n", ["T1"], 2)
    assert hook[1].heard
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_a_message_that_is_added_does_not_wait(make_agent, role):
    agent = make_agent(ADD, "done")

    def callback(event: MessageAddedEvent):
        if event.message["role"] == role:
            current_run().interrupt("q")

    agent.add_hook(callback)

    with pytest.raises(HookError, match="asks q, and what has happened cannot wait"):
        await agent.invoke_async("go")

    assert agent.suspension is None
    assert_valid_history(agent.messages)


async def test_several_callbacks_after_something_are_asked_together(make_agent):
    agent = make_agent(ADD, "done")
    one, two = (asking_through_the_run(AfterToolCallEvent, name) for name in ("one", "two"))
    add_hooks(agent, one, two)

    result = await agent.invoke_async("go")
    assert sorted(each.name for each in result.interrupts) == ["one", "two"]
    await agent.invoke_async(answers(*((each, each.name) for each in result.interrupts)))

    assert (one[1].heard, two[1].heard) == (["one"], ["two"])


async def test_a_stop_that_another_plugin_asks_for_survives_the_callbacks(make_agent):
    class Stopping:
        name = "stopping"

        @hookimpl
        async def around_tools(self, batch, call_next, agent):
            done = await call_next(batch)
            return ToolsOutcome(done.results, stop=Stop("enough"))

    agent = make_agent(ADD, "done", plugins=[Stopping()])
    add_hooks(agent, (AfterToolsEvent, lambda event: None))

    assert (await agent.invoke_async("go")).stop_reason == "enough"


# -- a pause that passes by ----------------------------------------------------------------------------------------


def suspend(name="inner"):
    return Suspend([Interrupt(f"v1:hook:{name}", name)], memo={"m": 1})


async def test_on_the_way_out_of_a_pause_questions_join_and_errors_take_its_place():
    registry = HookRegistry()
    registry.add_callback(AfterToolsEvent, lambda event: (_ for _ in ()).throw(suspend("outer")))

    with pytest.raises(Suspend) as caught:
        await registry.clean_up(AfterToolsEvent(None, {}), suspend())

    assert ([each.name for each in caught.value.interrupts], caught.value.memo) == (["inner", "outer"], {"m": 1})
    registry.add_callback(AfterToolsEvent, lambda event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await registry.clean_up(AfterToolsEvent(None, {}), suspend())


async def test_questions_on_the_way_out_of_a_cancellation_are_logged(caplog):
    registry = HookRegistry()
    registry.add_callback(AfterToolsEvent, lambda event: (_ for _ in ()).throw(suspend("outer")))

    await registry.clean_up(AfterToolsEvent(None, {}), SystemExit(1))

    assert "give way to SystemExit(1)" in caplog.text


async def test_questions_take_the_place_of_a_failure():
    registry = HookRegistry()
    registry.add_callback(AfterToolsEvent, lambda event: (_ for _ in ()).throw(suspend("outer")))

    with pytest.raises(Suspend):
        await registry.clean_up(AfterToolsEvent(None, {}), ValueError("x"))
