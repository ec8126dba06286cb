"""Cancelling a run, and calling an agent that is busy (conformance 135 to 142)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import tool
from ropewalk.errors import ConcurrencyException
from ropewalk_testing import ScriptedModel, assert_valid_history, use

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""


class Stalling:
    """A model that streams the given events and then is silent; a later call gets a plain answer."""

    def __init__(self, *events):
        self.events = events
        self.calls = 0
        self.requests = []
        self.silent = threading.Event()
        self.closed = False

    async def stream(self, request):
        self.calls += 1
        self.requests.append([dict(message) for message in request.messages])
        yield {"messageStart": {"role": "assistant"}}
        if self.calls == 1:
            for event in self.events:
                yield event

            self.silent.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                self.closed = True

        yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "an answer"}}}
        yield {"contentBlockStop": {"contentBlockIndex": 0}}
        yield {"messageStop": {"stopReason": "end_turn"}}


HALF = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "half an ans"}}}
USAGE = {"metadata": {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}, "metrics": {"latencyMs": 1}}}


# -- cancel ------------------------------------------------------------------------------------------------------


def test_cancelling_before_a_call_cancels_that_call_only(ask, make_agent, shape):
    """Conformance 135."""
    agent, model = make_agent(["hi"])
    agent.cancel()

    first = ask(agent, "one")

    assert first.stop_reason == "cancelled"
    assert (model.calls, list(agent.messages)) == (0, [])
    second = ask(agent, "two")
    assert second.stop_reason == "end_turn"
    assert shape(agent.messages) == [("user", [{"text": "two"}]), ("assistant", [{"text": "hi"}])]


def test_cancelling_in_the_middle_of_a_stream_keeps_text_and_usage(ask, make_agent, cancel_when):
    """Conformance 136 (B)."""
    model = Stalling(USAGE, HALF)
    agent, _ = make_agent(model)
    cancel_when(model.silent, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert str(result) == "half an ans\n"
    assert agent.messages[-1] == result.message
    assert result.message["content"] == [{"text": "half an ans"}]
    assert result.metrics.accumulated_usage["totalTokens"] == 10
    assert model.closed, "the provider's stream was left open"
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "an answer\n"


def test_cancelling_while_the_provider_is_silent_leaves_the_history_as_it_was(ask, make_agent, cancel_when):
    """Conformance 136 (B)."""
    model = Stalling()
    agent, _ = make_agent(model)
    cancel_when(model.silent, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert list(agent.messages) == []
    assert model.closed
    assert str(ask(agent, "again")) == "an answer\n"


def test_cancelling_in_the_middle_of_a_tool_use_runs_nothing(ask, make_agent, cancel_when):
    """Conformance 136 (B)."""
    ran = []

    @tool
    def note() -> str:
        """Notes."""
        ran.append(1)
        return "x"

    model = Stalling(
        HALF,
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "T1", "name": "note"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a":'}}}},
    )
    agent, _ = make_agent(model, tools=[note])
    cancel_when(model.silent, agent)

    result = ask(agent, "go")

    assert (result.stop_reason, ran) == ("cancelled", [])
    ask(agent, "again")
    assert_valid_history(agent.messages)
    assert_valid_history(model.requests[1])


async def test_a_consumer_that_cancels_before_the_tools_is_obeyed(make_agent, tool_results):
    """Conformance 137."""
    ran = []

    @tool
    async def note() -> str:
        """Notes."""
        ran.append(1)
        return "x"

    agent, model = make_agent([[use("note", {}, id="A"), use("note", {}, id="B")], "back"], tools=[note])

    async for event in agent.stream_async("go"):
        if "tools_starting" in event:
            agent.cancel()

        result = event.get("result")

    assert result.stop_reason == "cancelled"
    assert ran == []
    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("A", "error"), ("B", "error")]
    assert_valid_history(agent.messages)
    assert (await agent.invoke_async("again")).stop_reason == "end_turn"
    assert model.calls == 2


async def test_a_consumer_that_cancels_on_seeing_the_tool_use_is_obeyed(make_agent, tool_results):
    """Conformance 137."""
    ran = []

    @tool
    def note() -> str:
        """Notes."""
        ran.append(1)
        return "x"

    agent, _ = make_agent([[use("note", {}, id="A"), use("note", {}, id="B")], "back"], tools=[note])

    async for event in agent.stream_async("go"):
        if event.get("message", {}).get("role") == "assistant":
            agent.cancel()

        result = event.get("result")

    assert (result.stop_reason, ran) == ("cancelled", [])
    assert [r["status"] for r in tool_results(agent.messages)] == ["error", "error"]


def test_cancelling_reaches_a_running_async_tool(ask, make_agent, tool_results, cancel_when):
    """Conformance 138 (B)."""
    started, ended, cut = threading.Event(), [], []

    @tool
    async def sleep() -> str:
        """Sleeps."""
        started.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cut.append(1)
            raise

        ended.append(1)
        return "slept"

    agent, model = make_agent([use("sleep", {}, id="T1"), "back"], tools=[sleep])
    cancel_when(started, agent)

    result = ask(agent, "go")

    assert result.stop_reason == "cancelled"
    assert (ended, cut, model.calls) == ([], [1], 1)
    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("T1", "error")]
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "back\n"


def test_results_of_tools_that_had_ended_are_kept(ask, make_agent, tool_results, cancel_when):
    """Conformance 138 (B)."""
    started = threading.Event()

    @tool
    async def quick() -> str:
        """Is quick."""
        return "quick"

    @tool
    async def sleep() -> str:
        """Sleeps."""
        for _ in range(50):  # by now the other one has ended
            await asyncio.sleep(0)

        started.set()
        await asyncio.sleep(PATIENCE)
        return "slept"

    turns = [[use("quick", {}, id="A"), use("sleep", {}, id="B")], "back"]
    agent, _ = make_agent(turns, tools=[quick, sleep])
    cancel_when(started, agent)

    assert ask(agent, "go").stop_reason == "cancelled"
    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("A", "success"), ("B", "error")]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "quick"}]


def test_cancelling_often_is_cancelling_once_and_does_not_outlive_the_run(ask, make_agent):
    """Conformance 141."""

    @tool
    async def sleep() -> str:
        """Sleeps."""
        for _ in range(3):
            agent.cancel()

        await asyncio.sleep(PATIENCE)
        return "slept"

    agent, _ = make_agent([use("sleep", {}), "back"], tools=[sleep])

    assert ask(agent, "go").stop_reason == "cancelled"
    assert ask(agent, "again").stop_reason == "end_turn"


def test_cancelling_several_times_before_a_call_cancels_one_call(ask, make_agent):
    """Conformance 141."""
    agent, _ = make_agent(["hi"])
    for _ in range(3):
        agent.cancel()

    assert [ask(agent, "one").stop_reason, ask(agent, "two").stop_reason] == ["cancelled", "end_turn"]


async def test_cancelling_the_task_cancels_the_run_and_frees_the_agent(make_agent, tool_results):
    """Conformance 141."""
    started = asyncio.Event()

    @tool
    async def sleep() -> str:
        """Sleeps."""
        started.set()
        await asyncio.sleep(PATIENCE)
        return "slept"

    agent, _ = make_agent([use("sleep", {}, id="T1"), "back"], tools=[sleep])
    task = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert_valid_history(agent.messages)
    assert [r["status"] for r in tool_results(agent.messages)] == ["error"]
    assert (await agent.invoke_async("again")).stop_reason == "end_turn"


@pytest.mark.parametrize("place", ["data", "message", "tools_starting"])
async def test_leaving_a_stream_early_frees_the_agent(make_agent, place):
    """Conformance 141."""

    @tool
    async def note() -> str:
        """Notes."""
        return "x"

    agent, _ = make_agent([["text", use("note", {})], "back", "more"], tools=[note])
    stream = agent.stream_async("go")
    async for event in stream:
        if place in event:
            break

    await stream.aclose()

    assert (await agent.invoke_async("again")).stop_reason == "end_turn"
    assert_valid_history(agent.messages)


# -- a busy agent ------------------------------------------------------------------------------------------------


async def call_in_thread(agent):
    return await asyncio.to_thread(agent, "two")


async def call_async(agent):
    return await agent.invoke_async("two")


async def call_stream(agent):
    return [event async for event in agent.stream_async("two")]


@pytest.mark.parametrize("second", [call_in_thread, call_async, call_stream])
async def test_a_second_call_is_refused_and_the_first_goes_on(make_agent, shape, second):
    """Conformance 142."""
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        started.set()
        async with asyncio.timeout(PATIENCE):
            await go_on.wait()

        return "waited"

    agent, _ = make_agent([use("wait", {}), "first done", "third done"], tools=[wait])
    first = asyncio.create_task(agent.invoke_async("one"))
    await started.wait()

    with pytest.raises(ConcurrencyException):
        await second(agent)

    go_on.set()
    assert str(await first) == "first done\n"
    assert str(await agent.invoke_async("three")) == "third done\n"
    asked = [content[0]["text"] for role, content in shape(agent.messages) if "text" in content[0] and role == "user"]
    assert asked == ["one", "three"]


def test_a_tool_that_calls_its_own_agent_gets_the_refusal(ask, make_agent, tool_results, result_text):
    """Conformance 142."""

    @tool
    def again() -> str:
        """Calls its own agent."""
        return str(agent("nested"))

    agent, _ = make_agent([use("again", {}), "ok"], tools=[again])

    assert str(ask(agent, "go")) == "ok\n"
    (result,) = tool_results(agent.messages)
    assert result["status"] == "error"
    assert "ConcurrencyException" in result_text(result)


def test_a_tool_may_call_another_agent(ask, make_agent, tool_results):
    """Conformance 142."""
    other, _ = make_agent(ScriptedModel(["from the other"]))

    @tool
    async def delegate() -> str:
        """Calls another agent."""
        return str(other("nested")).strip()

    agent, _ = make_agent([use("delegate", {}), "ok"], tools=[delegate])

    assert str(ask(agent, "go")) == "ok\n"
    assert tool_results(agent.messages)[0]["content"] == [{"text": "from the other"}]
