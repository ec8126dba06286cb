"""How the events stand among other plugins, cancellation and failure."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import HookProvider, ModelOutcome, ModelThrottledException, PluginError, Retry, hookimpl
from ropewalk_hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
)
from ropewalk_testing import assert_valid_history, turn, use

PAIRS = [BeforeModelCallEvent, AfterModelCallEvent, BeforeToolsEvent, AfterToolsEvent, AfterInvocationEvent]


class Log(HookProvider):
    def __init__(self, *kinds):
        self.kinds = list(kinds)
        self.events = []

    def register_hooks(self, registry):
        registry.add_callback(self.kinds, self.events.append)

    @property
    def names(self):
        return [type(event).__name__ for event in self.events]


def test_callbacks_see_what_a_plugin_answers_in_the_place_of_the_model(make_agent):
    class Canned:
        name = "canned"

        @hookimpl
        async def around_model_call(self):
            return ModelOutcome.saying("canned")

    log = Log(AfterModelCallEvent)
    assert str(make_agent(plugins=[Canned()], hooks=[log])("Hi.")) == "canned\n"
    assert log.events[0].stop_response.message["content"] == [{"text": "canned"}]


def test_another_attempt_that_a_plugin_asks_for_is_told_of(make_agent):
    class Once:
        name = "once"

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            return Retry("bad") if outcome.message["content"] == [{"text": "bad"}] else outcome

    log = Log(BeforeModelCallEvent, AfterModelCallEvent)
    make_agent("bad", "good", plugins=[Once()], hooks=[log])("Hi.")

    assert log.names == ["BeforeModelCallEvent", "AfterModelCallEvent"] * 2
    first = log.events[1]
    assert (first.retry, first.stop_response, first.exception) == (True, None, None)


def test_every_attempt_of_a_retrying_plugin_has_its_events(make_agent):
    class RetryOnce:
        name = "retry"

        @hookimpl
        async def decide_retry(self, failure):
            return 0.0 if failure.attempt == 1 else None

    log = Log(BeforeModelCallEvent, AfterModelCallEvent)
    make_agent(ModelThrottledException("busy"), "Hello.", plugins=[RetryOnce()], hooks=[log])("Hi.")

    assert log.names == ["BeforeModelCallEvent", "AfterModelCallEvent"] * 2
    assert isinstance(log.events[1].exception, ModelThrottledException)


def test_an_error_of_another_plugin_is_told_of_and_raised(make_agent):
    class Broken:
        name = "broken"

        @hookimpl
        async def around_tool_call(self):
            raise LookupError("broken")

    log = Log(AfterToolCallEvent, AfterToolsEvent, AfterInvocationEvent)
    agent = make_agent(use("add", {"a": 1}, id="A"), plugins=[Broken()], hooks=[log])
    with pytest.raises(LookupError, match="broken"):
        agent("Hi.")

    assert log.names == ["AfterToolCallEvent", "AfterToolsEvent", "AfterInvocationEvent"]
    assert isinstance(log.events[0].exception, LookupError)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("hook", ["around_model_call", "around_tools"])
def test_a_plugin_that_answers_nothing_is_refused_by_its_name(make_agent, hook):
    class Forgetful:
        name = "forgetful"

        @hookimpl(specname=hook)
        async def answer(self): ...

    log = Log(AfterModelCallEvent, AfterToolsEvent)
    agent = make_agent(use("add", {"a": 1}, id="A"), plugins=[Forgetful()], hooks=[log])
    with pytest.raises(PluginError, match="forgetful"):
        agent("Hi.")


def test_a_final_answer_of_another_plugin_can_be_seen_and_changed(make_agent):
    class Ends:
        name = "ends"

        @hookimpl
        async def around_tools(self, batch, call_next):
            done = await call_next(batch)
            done.end_turn = "theirs"
            return done

    agent = make_agent(use("add", {"a": 1}, id="A"), plugins=[Ends()])

    def change(event: AfterToolsEvent):
        event.end_turn += ", and mine"

    agent.add_hook(change)

    assert str(agent("Hi.")) == "theirs, and mine\n"


def test_a_result_that_nobody_changes_is_the_very_one_of_the_tool(make_agent):
    results = []

    class Look:
        name = "look"
        order = -20

        @hookimpl
        async def around_tool_call(self, call, call_next):
            results.append(await call_next(call))
            return results[-1]

    class Inner(Look):
        name = "inner"
        order = 5

    make_agent(use("add", {"a": 1}, id="A"), "Fine.", plugins=[Look(), Inner()], hooks=[Log(AfterToolCallEvent)])("Hi.")

    assert results[0] is results[1]


async def test_a_cancel_in_a_callback_ends_the_run(make_agent):
    log = Log(*PAIRS)
    agent = make_agent(use("add", {"a": 1}, id="A"), "never", hooks=[log])
    agent.add_hook(lambda event: event.agent.cancel(), BeforeToolsEvent)
    result = await agent.invoke_async("Hi.")

    assert result.stop_reason == "cancelled"
    assert log.names[-1] == "AfterInvocationEvent"
    assert_valid_history(agent.messages)


async def test_a_callback_that_waits_is_reached_by_a_cancel(make_agent):
    log = Log(AfterInvocationEvent)
    agent = make_agent("Hello.", hooks=[log])

    async def wait(event):
        event.agent.cancel()
        await asyncio.Event().wait()

    agent.add_hook(wait, BeforeModelCallEvent)
    async with asyncio.timeout(10):
        result = await agent.invoke_async("Hi.")

    assert result.stop_reason == "cancelled"
    assert log.names == ["AfterInvocationEvent"]


async def test_the_end_is_told_of_when_the_task_is_cancelled_from_outside(make_agent):
    reached = asyncio.Event()
    log = Log(AfterInvocationEvent, AfterModelCallEvent)
    agent = make_agent("Hello.", hooks=[log])

    async def wait(event):
        reached.set()
        await asyncio.Event().wait()

    agent.add_hook(wait, BeforeModelCallEvent)
    task = asyncio.create_task(agent.invoke_async("Hi."))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert log.names == ["AfterInvocationEvent"]
    assert log.events[0].result is None


def test_a_cut_answer_is_kept_when_a_callback_asks_for_another_attempt_after_a_cancel(make_agent):
    def cancel_and_retry(event: AfterModelCallEvent):
        event.retry = True

    agent = make_agent(turn("half", deltas=4), "never", hooks=[cancel_and_retry])

    class Stop:
        name = "stop"

        @hookimpl
        def on_delta(self, event, agent):
            if "data" in event.as_dict():
                agent.cancel()

    agent.add_plugin(Stop())
    result = agent("Hi.")

    assert (result.stop_reason, agent.model.calls) == ("cancelled", 1)
    assert agent.messages[-1]["role"] == "assistant"


def test_a_retried_tool_stops_when_the_agent_is_cancelled(make_agent):
    runs = []

    def retry(event: AfterToolCallEvent):
        runs.append(1)
        event.retry = True
        if len(runs) == 2:
            event.agent.cancel()

    agent = make_agent(use("add", {"a": 1}, id="A"), "never", hooks=[retry])

    assert agent("Hi.").stop_reason == "cancelled"
    assert len(runs) == 2


def test_the_duration_is_that_of_the_tool(make_agent):
    log = Log(AfterToolCallEvent)
    make_agent(use("add", {"a": 1}, id="A"), "Fine.", hooks=[log])("Hi.")

    assert log.events[0].duration >= 0
    assert log.events[0].exception is None


def test_events_see_the_callers_state_by_reference(make_agent):
    log = Log(
        BeforeInvocationEvent, AfterInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent, AfterToolCallEvent
    )
    state = {"mine": object()}
    make_agent(use("add", {"a": 1}, id="A"), "Fine.", hooks=[log])("Hi.", invocation_state=state)

    assert len(log.events) == 6
    assert all(event.invocation_state is state for event in log.events)


def test_a_call_with_arguments_that_are_no_json_can_be_repaired(make_agent):
    def repair(event: BeforeToolCallEvent):
        event.tool_use = {**event.tool_use, "input": {"a": 2, "b": 3}}

    agent = make_agent(use("add", "[1, 2]", id="A"), "Fine.", hooks=[repair])
    agent("Hi.")

    assert agent.messages[2]["content"][0]["toolResult"]["content"] == [{"text": "5"}]


def test_a_direct_call_may_have_arguments_that_cannot_be_copied(make_agent):
    class Uncopied:
        def __deepcopy__(self, memo):
            raise TypeError("no copies")

        def __radd__(self, other):
            return other + 1

    log = Log(BeforeToolCallEvent)
    agent = make_agent(hooks=[log])

    assert agent.tool.add(a=Uncopied(), record_direct_tool_call=False)["content"] == [{"text": "1"}]
    assert len(log.events) == 1
