"""The ways to call an agent, from wherever it is called (the kind behind conformance 1, 35, 141 and 142)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ropewalk import Agent, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""


@tool
async def ping() -> str:
    """Pings."""
    await asyncio.sleep(0)
    return "pong"


def fresh_agent(*turns, **parameters):
    return Agent(model=ScriptedModel(list(turns)), tools=[ping], callback_handler=None, **parameters)


async def test_a_stream_that_is_never_read_does_nothing():
    """Conformance 35."""
    agent = fresh_agent("hi")

    stream = agent.stream_async("never read")
    await stream.aclose()
    del stream

    assert (agent.model.calls, list(agent.messages)) == (0, [])
    assert str(await agent.invoke_async("go")) == "hi\n"


async def test_a_consumer_that_raises_frees_the_agent():
    """Conformance 141."""
    agent = fresh_agent([text("well"), use("ping")], "back")

    async def follow():
        async for event in agent.stream_async("go"):
            if "tools_starting" in event:
                raise LookupError("the consumer's own")

    with pytest.raises(LookupError):
        await follow()

    for _ in range(20):  # an abandoned generator is closed by the loop, a moment later
        await asyncio.sleep(0)

    assert str(await agent.invoke_async("again")) == "back\n"
    assert_valid_history(agent.messages)


async def test_a_stream_can_be_closed_by_another_task():
    """Conformance 141."""
    agent = fresh_agent(turn("half", stall=PATIENCE), "back")
    stream = agent.stream_async("go")
    async for event in stream:
        if "data" in event:
            break

    await asyncio.create_task(stream.aclose())

    assert str(await agent.invoke_async("again")) == "back\n"
    assert_valid_history(agent.messages)


async def test_a_timeout_around_a_stream_frees_the_agent():
    """Conformance 141."""
    agent = fresh_agent(turn("half", stall=PATIENCE), "back")

    async def follow():
        async with asyncio.timeout(None) as limit:
            async for event in agent.stream_async("go"):
                if "data" in event:
                    limit.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        await follow()

    assert str(await agent.invoke_async("again")) == "back\n"
    assert_valid_history(agent.messages)


async def test_a_slow_consumer_gets_everything_in_order():
    """Conformance 35."""
    agent = fresh_agent(turn("abcdefghij" * 50, deltas=500))
    got = []

    async for event in agent.stream_async("go"):
        await asyncio.sleep(0)
        got.append(event.get("data", ""))

    assert "".join(got) == "abcdefghij" * 50


async def test_the_tools_wait_until_the_consumer_has_seen_the_message():
    """Conformance 35."""
    log = []

    @tool
    async def note() -> str:
        """Notes."""
        log.append("tool")
        return "x"

    agent = Agent(model=ScriptedModel([use("note"), "ok"]), tools=[note], callback_handler=None)

    async for event in agent.stream_async("go"):
        if event.get("message", {}).get("role") == "assistant" and "tool" not in log:
            for _ in range(20):
                await asyncio.sleep(0)

            log.append("seen")

    assert log[:2] == ["seen", "tool"]


@pytest.mark.parametrize("key", ["data", "tools_starting", "message"])
def test_a_callback_that_cancels_is_obeyed(ask, key):
    """Conformance 137."""
    ran = []

    @tool
    async def note() -> str:
        """Notes."""
        ran.append(1)
        return "x"

    def callback(**event):
        if key in event and not ran:
            agent.cancel()

    turns = [[text("well"), use("note", {}, id="T1")], "back"]
    agent = Agent(model=ScriptedModel(turns), tools=[note], callback_handler=callback)

    assert ask(agent, "go").stop_reason == "cancelled"
    assert ran == []
    assert_valid_history(agent.messages)


def test_many_agents_in_many_threads_do_not_disturb_one_another():
    """Conformance 142."""
    gate = threading.Barrier(8)

    def run(number):
        agent = fresh_agent([use("ping"), use("ping")], use("ping"), f"answer {number}")
        gate.wait(PATIENCE)
        answer = str(agent(f"question {number}"))
        assert_valid_history(agent.messages)
        return answer

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [f"answer {number}\n" for number in range(8)]


async def test_many_agents_on_one_loop_do_not_disturb_one_another():
    """Conformance 142."""
    agents = [fresh_agent([use("ping"), use("ping")], use("ping"), f"answer {number}") for number in range(50)]

    results = await asyncio.gather(*(agent.invoke_async("go") for agent in agents))

    assert [str(result) for result in results] == [f"answer {number}\n" for number in range(50)]
    assert all(result.metrics.tool_metrics["ping"].call_count == 3 for result in results)


async def test_a_thousand_calls_refused_at_once_leave_the_first_alone():
    """Conformance 142."""
    agent = fresh_agent(*([use("ping")] * 5), "done")

    results = await asyncio.gather(*(agent.invoke_async(f"call {n}") for n in range(1000)), return_exceptions=True)

    assert [str(result) for result in results if not isinstance(result, Exception)] == ["done\n"]
    assert {type(result).__name__ for result in results} == {"AgentResult", "ConcurrencyException"}
    assert_valid_history(agent.messages)


def test_one_agent_can_be_called_from_loop_after_loop():
    """Conformance 1."""
    agent = fresh_agent(*(f"answer {n}" for n in range(6)))
    answers = []
    for _ in range(2):
        answers.append(str(asyncio.run(agent.invoke_async("async"))))
        answers.append(str(agent("blocking")))
        with ThreadPoolExecutor(1) as pool:
            answers.append(str(pool.submit(agent, "in a thread").result(PATIENCE)))

    assert answers == [f"answer {n}\n" for n in range(6)]


def test_agents_nested_in_tools_work_at_any_depth(ask):
    """Conformance 142."""

    def nested(depth):
        @tool
        def deeper() -> str:
            """Calls the next agent, blocking."""
            return str(nested(depth - 1)("go")).strip()

        @tool
        async def deeper_still() -> str:
            """Calls the next agent, blocking the loop that it runs on."""
            return str(nested(depth - 1)("go")).strip()

        body = deeper if depth % 2 else deeper_still

        def model(request):
            last = request.messages[-1]["content"][0]
            if depth == 0:
                return "the bottom"

            return last["toolResult"]["content"][0]["text"] if "toolResult" in last else use(body.tool_name)

        return Agent(model=ScriptedModel(model), tools=[body], callback_handler=None)

    assert str(ask(nested(5), "go")) == "the bottom\n"
