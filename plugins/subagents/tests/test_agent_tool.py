from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from contextvars import ContextVar

import pytest

from ropewalk import Agent, ToolContext, hookimpl, tool
from ropewalk.kits.events import ToolStreamed
from ropewalk_subagents import line
from ropewalk_subagents.line import line_of
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use


def ask(name="scout", say="go", use_id="T1"):
    return use(name, {"input": say}, id=use_id)


async def finish(task, seconds=30):
    """The end of a task that has a bound only so that a fault is a failure and not a hang."""
    await asyncio.wait([task], timeout=seconds)
    assert task.done()
    return task.result()


async def until(happened):
    """Waits for a `threading.Event` that a model or tool sets."""
    for _ in range(20_000):
        if happened.is_set():
            return

        await asyncio.sleep(0.001)

    raise AssertionError("it did not happen")


# -- fresh copies ------------------------------------------------------------------------------------------------------


async def test_each_call_starts_from_the_messages_and_state_of_construction(make_agent, results_of):
    model = ScriptedModel(["before", "one", "two"])
    first = [
        {"role": "user", "content": [{"text": "You are Ann."}]},
        {"role": "assistant", "content": [{"text": "Yes."}]},
    ]
    scout = make_agent(model, name="scout", messages=first, state={"n": 1}, system_prompt="Be short.")
    await scout.invoke_async("something else")
    scout.state.set("n", 2)
    agent = make_agent([ask(say="a"), ask(say="b"), "done"], tools=[scout])

    await agent.invoke_async("go")

    assert results_of(agent) == [("success", "one"), ("success", "two")]
    for request, say in zip(model.requests[1:], "ab", strict=True):
        assert [m["content"][0]["text"] for m in request.messages] == ["You are Ann.", "Yes.", say]
        assert request.system == ({"text": "Be short."},)

    assert (len(scout.messages), scout.state.get("n")) == (4, 2)


async def test_a_model_given_by_name_is_loaded_once(make_agent, results_of):
    loads = []

    class Provider:
        name = "acme"

        @hookimpl
        def provide_model(self, spec):
            if spec == "acme:x":
                loads.append(spec)
                return ScriptedModel(["one", "two"])

            return None

    scout = Agent(model="acme:x", name="scout", plugins=[Provider()], callback_handler=None)
    agent = make_agent([ask(), ask(), "done"], tools=[scout])

    await agent.invoke_async("go")

    assert (loads, results_of(agent)) == (["acme:x"], [("success", "one"), ("success", "two")])


async def test_a_copy_is_closed_when_it_has_answered(make_agent, results_of, caplog):
    closed = []

    class Cleaner:
        name = "cleaner"

        @hookimpl
        async def on_close(self, agent):
            closed.append(agent)
            raise OSError("no")

    scout = make_agent(["found"], name="scout", plugins=[Cleaner()])
    agent = make_agent([ask(), "done"], tools=[scout])

    await agent.invoke_async("go")

    assert [each is not scout for each in closed] == [True]
    assert results_of(agent) == [("success", "found")]
    assert "cleaning up after a call of agent scout failed" in caplog.text


# -- kept context ------------------------------------------------------------------------------------------------------


async def test_a_kept_conversation_goes_on_and_is_not_closed(make_agent, results_of):
    scout = make_agent(["one", "two", "three"], name="scout")
    agent = make_agent([ask(), ask(), "done"], tools=[scout.as_tool(preserve_context=True)])

    await agent.invoke_async("go")
    await scout.invoke_async("and?")

    assert results_of(agent) == [("success", "one"), ("success", "two")]
    assert len(scout.messages) == 6


async def test_an_agent_that_somebody_else_uses_answers_with_an_error(make_agent, results_of):
    model = ScriptedModel([turn("slow", stall=30), "never"])
    scout = make_agent(model, name="scout")
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)])
    using = asyncio.create_task(scout.invoke_async("mine"))
    await until(model.stalled)

    await agent.invoke_async("go")
    scout.cancel()
    await finish(using)

    assert results_of(agent) == [("error", "Error: Agent 'scout' is already processing a request")]


# -- what the caller's model is told -----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"input": 3}, {"query": "x"}, {"input": None}])
async def test_input_that_is_no_text_is_an_error(make_agent, results_of, given):
    scout = make_agent([], name="scout")
    agent = make_agent([use("scout", given), "done"], tools=[scout])

    await agent.invoke_async("go")

    assert results_of(agent) == [("error", "Error: scout takes one argument, 'input', which is a text")]


async def test_what_the_agent_raises_is_an_error_that_names_it(make_agent, results_of):
    scout = make_agent([RuntimeError("no network")], name="scout")
    agent = make_agent([ask(), "done"], tools=[scout])

    await agent.invoke_async("go")

    assert results_of(agent) == [("error", "Error: agent 'scout' failed: RuntimeError - no network")]


async def test_a_blank_input_is_an_error(make_agent, results_of):
    agent = make_agent([ask(say="  "), "done"], tools=[make_agent([], name="scout")])

    await agent.invoke_async("go")

    assert results_of(agent)[0][0] == "error"
    assert "the prompt is blank" in results_of(agent)[0][1]


async def test_an_agent_that_is_closed_is_an_error_when_it_keeps_its_context(make_agent, results_of):
    scout = make_agent([], name="scout")
    await scout.aclose()
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)])

    await agent.invoke_async("go")

    assert results_of(agent)[0][0] == "error"
    assert "AgentClosedError" in results_of(agent)[0][1]


@pytest.mark.parametrize("kept", [False, True])
async def test_an_exit_in_a_sub_agent_leaves_the_caller(make_agent, kept):
    @tool
    def leave() -> str:
        raise SystemExit(3)

    scout = make_agent([use("leave", {}), "never"], name="scout", tools=[leave])
    agent = make_agent([ask(), "never"], tools=[scout.as_tool(preserve_context=kept)])

    with pytest.raises(SystemExit):
        await agent.invoke_async("go")

    assert_valid_history(agent.messages)


# -- what reaches through ----------------------------------------------------------------------------------------------


async def test_events_of_the_agent_are_streamed_to_the_followers_of_its_caller(make_agent):
    leaf = make_agent([turn(text("deep"), deltas=1)], name="leaf")
    scout = make_agent([ask("leaf"), turn(text("found it"), deltas=2)], name="scout", tools=[leaf])
    agent = make_agent([ask(), "done"], tools=[scout])

    events = [event async for event in agent.stream_async("go")]

    inner = [event["tool_stream_event"] for event in events if event.get("type") == "tool_stream"]
    assert {event["tool_use"]["name"] for event in inner} == {"scout"}
    assert "".join(event["data"].get("data", "") for event in inner) == "found it"
    nested = [event["data"]["tool_stream_event"] for event in inner if event["data"].get("type") == "tool_stream"]
    assert "".join(event["data"].get("data", "") for event in nested) == "deep"
    assert not any("result" in event["data"] for event in [*inner, *nested])
    assert sum("result" in event for event in events) == 1


async def test_the_agent_runs_in_the_context_of_its_caller(make_agent):
    tenant = ContextVar("tenant", default="nobody")
    seen = []

    @tool
    async def read() -> str:
        seen.append(tenant.get())
        tenant.set("changed below")
        return "read"

    scout = make_agent([use("read", {}), "ok"], name="scout", tools=[read])
    agent = make_agent([ask(), "done"], tools=[scout])
    tenant.set("acme")

    await agent.invoke_async("go")

    assert (seen, tenant.get()) == (["acme"], "acme")


async def test_the_invocation_state_is_the_callers_own_dict(make_agent):
    @tool(context=True)
    def note(tool_context: ToolContext) -> str:
        tool_context.invocation_state["seen"] = tool_context.invocation_state["tenant"]
        return "noted"

    scout = make_agent([use("note", {}), "ok"], name="scout", tools=[note])
    agent = make_agent([ask(), "done"], tools=[scout])
    state = {"tenant": "acme"}

    await agent.invoke_async("go", invocation_state=state)

    assert state == {"tenant": "acme", "seen": "acme"}


# -- cancelling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
async def test_a_cancelled_caller_stops_its_sub_agent_and_what_was_said_is_kept(make_agent, results_of, kept):
    model = ScriptedModel([turn(text("half"), stall=300), "later"])
    scout = make_agent(model, name="scout")
    agent = make_agent([ask(), "never", "again"], tools=[scout.as_tool(preserve_context=kept)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(model.stalled)

    agent.cancel()
    result = await finish(running)

    assert result.stop_reason == "cancelled"
    assert (model.active, agent.model.calls) == (0, 1)
    assert_valid_history(agent.messages)
    assert results_of(agent)[0][0] == "error"
    if kept:
        assert_valid_history(scout.messages)
        assert scout.messages[-1]["content"] == [{"text": "half"}]
        assert (await scout.invoke_async("go on")).stop_reason == "end_turn"


@pytest.mark.parametrize("kept", [False, True])
async def test_a_cancelled_caller_tells_the_sub_agents_tool_in_its_thread(make_agent, kept):
    started, told = threading.Event(), threading.Event()

    @tool(context=True)
    def wait(tool_context: ToolContext) -> str:
        started.set()
        if tool_context.cancel_signal.wait(30):
            told.set()

        return "late"

    scout = make_agent([use("wait", {}), "never"], name="scout", tools=[wait])
    agent = make_agent([ask(), "never"], tools=[scout.as_tool(preserve_context=kept)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(started)

    agent.cancel()
    assert (await finish(running)).stop_reason == "cancelled"
    await until(told)
    if kept:
        assert_valid_history(scout.messages)


async def test_a_sub_agent_that_does_not_stop_is_cut_off(make_agent):
    model = ScriptedModel([turn("x", stall=300)])
    stubborn = make_agent(model, name="scout")
    agent = make_agent([ask(), "never"], tools=[stubborn])

    class Deaf:
        """Swallows the first cancellation."""

        name = "deaf"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            for _ in range(3):
                try:
                    await asyncio.sleep(300)
                except asyncio.CancelledError:
                    continue

            raise RuntimeError("unreachable in time")

    stubborn.add_plugin(Deaf())
    running = asyncio.create_task(agent.invoke_async("go"))
    for _ in range(50):
        await asyncio.sleep(0.001)

    agent.cancel()
    assert (await finish(running)).stop_reason == "cancelled"


async def test_an_outer_task_that_is_cancelled_stops_the_sub_agent_too(make_agent):
    model = ScriptedModel([turn(text("half"), stall=300)])
    scout = make_agent(model, name="scout")
    agent = make_agent([ask(), "never"], tools=[scout.as_tool(preserve_context=True)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(model.stalled)

    running.cancel()
    await asyncio.wait([running], timeout=30)

    assert running.cancelled()
    assert model.active == 0
    assert_valid_history(agent.messages)
    assert_valid_history(scout.messages)


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancel_while_the_agent_ends_does_not_reach_its_next_call(make_agent, steps):
    loop = asyncio.get_running_loop()

    class Follower:
        name = "follower"

        @hookimpl
        def on_delta(self, event, agent):
            if isinstance(event, ToolStreamed) and "message" in event.data:
                loop.call_soon(count_down, agent, steps)

    def count_down(agent, left):
        if left:
            loop.call_soon(count_down, agent, left - 1)
        else:
            agent.cancel()

    scout = make_agent(["one", "two"], name="scout")
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)], plugins=[Follower()])

    await agent.invoke_async("go")

    assert (await scout.invoke_async("again")).stop_reason == "end_turn"


async def test_a_call_in_the_line_of_a_cancelled_caller_never_starts(make_agent, results_of):
    model = ScriptedModel([turn("x", stall=300), "never"])
    scout = make_agent(model, name="scout")
    agent = make_agent([[ask(use_id="T1"), ask(use_id="T2")], "never"], tools=[scout.as_tool(preserve_context=True)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(model.stalled)

    agent.cancel()
    assert (await finish(running)).stop_reason == "cancelled"
    assert (model.calls, len(results_of(agent))) == (1, 2)
    assert line._waiting == []


async def test_a_caller_that_is_cancelled_already_starts_nothing(make_agent):
    scout = make_agent(["never"], name="scout")

    @tool(context=True)
    async def stop(tool_context: ToolContext) -> str:
        tool_context.agent.cancel()
        return "stopping"

    agent = make_agent([[use("stop", {}, id="T1"), ask(use_id="T2")], "never"], tools=[stop, scout])
    agent.cancel()
    assert (await agent.invoke_async("go")).stop_reason == "cancelled"

    class InOrder:
        name = "executor"

        @hookimpl
        async def execute_tools(self, batch, run_tool):
            return [await run_tool(call) for call in batch.calls]

    agent.add_plugin(InOrder())
    assert (await agent.invoke_async("go")).stop_reason == "cancelled"
    assert scout.model.calls == 0


# -- recursion ---------------------------------------------------------------------------------------------------------


async def test_an_agent_that_calls_itself_without_end_is_bounded(make_agent, results_of):
    model = ScriptedModel(lambda request: ask("me") if not _has_result(request) else "back")
    me = make_agent(model, name="me")
    me.tool_registry.add(me.as_tool())

    result = await me.invoke_async("go")

    assert str(result) == "back\n"
    errors = [r for request in model.requests for r in _results(request) if r["status"] == "error"]
    assert {error["content"][0]["text"] for error in errors} == {
        "Error: agent 'me' was not asked: sub-agents are nested 8 deep already, which is the limit; answer without it"
    }
    assert model.calls == 18


def _results(request):
    return [
        block["toolResult"] for message in request.messages for block in message["content"] if "toolResult" in block
    ]


def _has_result(request):
    return bool(_results(request))


async def test_an_agent_that_keeps_its_context_and_asks_itself_is_told(make_agent, results_of):
    model = ScriptedModel([ask("me"), "done"])
    me = make_agent(model, name="me")
    me.tool_registry.add(me.as_tool(preserve_context=True))

    await me.invoke_async("go")

    assert results_of(me)[0][0] == "error"
    assert "waits for this very call" in results_of(me)[0][1]


async def test_an_agent_that_asks_itself_through_another_is_told(make_agent, results_of):
    me = make_agent([ask("other"), "done"], name="me")
    other = make_agent([ask("me"), "fine"], name="other", tools=[me.as_tool(preserve_context=True)])
    me.tool_registry.add(other.as_tool(preserve_context=True))

    await me.invoke_async("go")

    assert results_of(me) == [("success", "fine")]
    assert "waits for this very call" in results_of(other)[0][1]


def test_depth_is_counted_through_synchronous_tools(make_agent, results_of):
    model = ScriptedModel(lambda request: "back" if _has_result(request) else use("again", {}))
    me = make_agent(model, name="me")

    @tool(context=True)
    def again(tool_context: ToolContext) -> str:
        return str(tool_context.agent.tool.me(input="go", record_direct_tool_call=False)["content"][0]["text"])

    me.tool_registry.add(again)
    me.tool_registry.add(me.as_tool())

    assert str(me("go")) == "back\n"
    assert model.calls == 18


# -- what is left behind -----------------------------------------------------------------------------------------------


async def test_nothing_of_a_call_is_left_behind(make_agent):
    scout = make_agent(["one", lambda request: RuntimeError("two")], name="scout")
    agent = make_agent([ask(), ask(), "done"], tools=[scout])
    copies = []

    class Watcher:
        name = "watcher"

        @hookimpl
        def on_agent_ready(self, agent):
            copies.append(weakref.ref(agent))

    scout.add_plugin(Watcher())
    copies.clear()
    gc.collect()
    gc.disable()
    try:
        await agent.invoke_async("go")
        assert [copy() for copy in copies] == [None, None]
    finally:
        gc.enable()


def test_synchronous_callers_in_threads_share_one_kept_agent(make_agent, results_of):
    scout = make_agent(ScriptedModel(lambda request: "found"), name="scout")
    kept = scout.as_tool(preserve_context=True)
    agents = [make_agent([ask(), ask(), "done"], tools=[kept]) for _ in range(4)]
    threads = [threading.Thread(target=agent, args=("go",)) for agent in agents]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(30)

    assert [results_of(agent) for agent in agents] == [[("success", "found")] * 2] * 4
    assert len(scout.messages) == 16
    assert not line_of(scout)._busy


async def test_an_error_that_nobody_takes_any_more_leaves_nothing_behind(make_agent):
    """The caller is cancelled at the very moment at which its sub-agent fails."""
    failing = asyncio.Event()

    async def fail(request):
        failing.set()
        return RuntimeError("down")

    scout = make_agent([fail], name="scout")
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)])
    gc.collect()
    gc.disable()
    try:
        task = asyncio.create_task(agent.invoke_async("go"))
        await failing.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)

        with pytest.raises(asyncio.CancelledError):
            await task

        gone = weakref.ref(scout)
        del agent, scout, task
        for _ in range(10):
            await asyncio.sleep(0)

        assert gone() is None
    finally:
        gc.enable()
