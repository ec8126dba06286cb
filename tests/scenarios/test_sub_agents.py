"""A35: an agent as a tool: context, parallel use, cancel."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import ToolContext, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use


async def until(happened):
    for _ in range(20_000):
        if happened.is_set():
            return

        await asyncio.sleep(0.001)

    raise AssertionError("it did not happen")


async def ended(task):
    """The task's result; the bound only makes a hang a failure."""
    await asyncio.wait([task], timeout=30)
    assert task.done()
    return task.result()


@pytest.mark.parametrize("preserve", [False, True])
def test_the_child_sees_the_state_and_its_writes_are_shared(ask, make_agent, preserve):
    """The stated rule: it is one dict, the caller's own."""

    @tool(context=True)
    def read(tool_context: ToolContext) -> str:
        tool_context.invocation_state["read"] = True
        return tool_context.invocation_state["tenant"]

    child, child_model = make_agent([use("read", {}), "ok"], name="child", tools=[read])
    agent, _ = make_agent([use("child", {"input": "x"}), "done"], tools=[child.as_tool(preserve_context=preserve)])
    state = {"tenant": "acme"}

    ask(agent, "go", invocation_state=state)

    results = child_model.requests[1].messages[-1]["content"]
    assert results[0]["toolResult"]["content"] == [{"text": "acme"}]
    assert state == {"tenant": "acme", "read": True}


@pytest.mark.parametrize("preserve", [False, True])
def test_two_calls_to_one_sub_agent_in_one_turn_are_both_answered(ask, make_agent, tool_results, preserve):
    child, child_model = make_agent(ScriptedModel(_echo), name="child")
    agent, _ = make_agent(
        [[use("child", {"input": "one"}, id="T1"), use("child", {"input": "two"}, id="T2")], "done"],
        tools=[child.as_tool(preserve_context=preserve)],
    )

    result = ask(agent, "go")

    assert [r["content"][0]["text"] for r in tool_results(agent.messages)] == ["heard one", "heard two"]
    assert (result.stop_reason, child_model.calls) == ("end_turn", 2)
    assert len(child.messages) == (4 if preserve else 0)
    assert_valid_history(agent.messages)
    assert_valid_history(child.messages)


def _echo(request):
    return f"heard {request.messages[-1]['content'][0]['text']}"


async def test_fresh_copies_run_at_the_same_time(make_agent, tool_results):
    together = asyncio.Barrier(2)

    @tool
    async def meet() -> str:
        await together.wait()
        return "met"

    def script(request):
        return "ok" if len(request.messages) > 1 else use("meet", {})

    child, _ = make_agent(ScriptedModel(script), name="child", tools=[meet])
    agent, _ = make_agent(
        [[use("child", {"input": "one"}, id="T1"), use("child", {"input": "two"}, id="T2")], "done"], tools=[child]
    )

    await ended(asyncio.create_task(agent.invoke_async("go")))

    assert [r["status"] for r in tool_results(agent.messages)] == ["success", "success"]


@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize("while_", ["the model streams", "an async tool runs", "a sync tool runs"])
async def test_cancelling_the_parent_stops_the_child(make_agent, tool_results, preserve, while_):
    started, left = threading.Event(), threading.Event()

    @tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(300)
        finally:
            left.set()

        return "late"

    @tool(context=True)
    def block(tool_context: ToolContext) -> str:
        started.set()
        if tool_context.cancel_signal.wait(300):
            left.set()

        return "late"

    first = {"the model streams": turn(text("half"), stall=300)}.get(while_)
    name = "wait" if while_ == "an async tool runs" else "block"
    child, child_model = make_agent([first or use(name, {}), "again"], name="child", tools=[wait, block])
    agent, model = make_agent([use("child", {"input": "x"}), "never"], tools=[child.as_tool(preserve_context=preserve)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(child_model.stalled if first else started)

    threading.Thread(target=agent.cancel).start()
    result = await ended(running)

    assert result.stop_reason == "cancelled"
    if not first:
        await until(left)

    assert (model.calls, child_model.calls, child_model.active) == (1, 1, 0)
    assert [r["status"] for r in tool_results(agent.messages)] == ["error"]
    assert_valid_history(agent.messages)
    assert_valid_history(child.messages)
    if preserve:
        assert str(await child.invoke_async("once more")) == "again\n"
        assert_valid_history(child.messages)


@pytest.mark.parametrize("preserve", [False, True])
async def test_a_parent_that_is_cancelled_already_starts_no_child(make_agent, preserve):
    @tool(context=True)
    async def stop(tool_context: ToolContext) -> str:
        tool_context.agent.cancel()
        return "stopping"

    child, child_model = make_agent([], name="child")
    agent, model = make_agent(
        [[use("stop", {}, id="T1"), use("child", {"input": "x"}, id="T2")], "never"],
        tools=[stop, child.as_tool(preserve_context=preserve)],
        plugins=["-executor"],
    )
    agent.cancel()
    assert (await agent.invoke_async("go")).stop_reason == "cancelled"
    assert (await agent.invoke_async("go")).stop_reason == "cancelled"

    assert (model.calls, child_model.calls, child.messages) == (1, 0, [])
    assert_valid_history(agent.messages)


async def test_the_events_of_the_child_reach_who_follows_the_parent(make_agent):
    child, _ = make_agent(["child speaks"], name="child")
    agent, _ = make_agent([use("child", {"input": "x"}), "parent speaks"], tools=[child])

    events = [event async for event in agent.stream_async("go")]

    own = "".join(event["data"] for event in events if "data" in event)
    inner = [event["tool_stream_event"]["data"] for event in events if event.get("type") == "tool_stream"]
    assert own == "parent speaks"
    assert "".join(event["data"] for event in inner if "data" in event) == "child speaks"


@pytest.mark.parametrize("preserve", [False, True])
async def test_a_cancel_reaches_through_several_agents(make_agent, preserve):
    leaf, leaf_model = make_agent([turn(text("half"), stall=300)], name="leaf")
    child, _ = make_agent(
        [use("leaf", {"input": "x"}), "never"], name="child", tools=[leaf.as_tool(preserve_context=preserve)]
    )
    agent, _ = make_agent([use("child", {"input": "x"}), "never"], tools=[child.as_tool(preserve_context=preserve)])
    running = asyncio.create_task(agent.invoke_async("go"))
    await until(leaf_model.stalled)

    agent.cancel()

    assert (await ended(running)).stop_reason == "cancelled"
    assert leaf_model.active == 0
    for each in (agent, child, leaf):
        assert_valid_history(each.messages)

    if preserve:
        assert leaf.messages[-1]["content"] == [{"text": "half"}]
