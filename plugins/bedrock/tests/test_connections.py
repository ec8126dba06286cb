"""How many connections there are, and when they end."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import aclosing

import pytest

from ropewalk import Agent
from ropewalk_testing import turn, use
from ropewalk_testing.servers import http_fault

# -- connections -------------------------------------------------------------------------------------------------


def test_a_hundred_synchronous_calls_use_one_connection(bedrock):
    model, server = bedrock(["hi"] * 100)
    agent = Agent(model=model, callback_handler=None)

    for number in range(100):
        agent(f"q{number}")

    assert (server.calls, server.connections) == (100, 1)


def test_two_event_loops_in_a_row_use_one_connection(bedrock, request_of, drain):
    model, server = bedrock(["hi", "ho"])

    for _ in range(2):
        asyncio.run(drain(model, request_of()))

    assert (server.calls, server.connections) == (2, 1)


async def test_an_error_answer_does_not_cost_the_connection(bedrock, request_of, drain):
    model, server = bedrock([http_fault(429), "hi"])
    with pytest.raises(Exception, match="scripted"):
        await drain(model, request_of())

    await drain(model, request_of())

    assert server.connections == 1


async def test_many_streams_at_once_are_kept_apart(bedrock, request_of, outcome):
    model, server = bedrock(lambda received: received.body["messages"][0]["content"][0]["text"])

    results = await asyncio.gather(*[outcome(model, request_of(f"q{n}")) for n in range(20)])

    assert [result.message["content"] for result in results] == [[{"text": f"q{n}"}] for n in range(20)]
    assert server.calls == 20


async def test_a_closed_model_can_be_used_again(bedrock, request_of, drain):
    model, server = bedrock(["hi", "ho"])
    await drain(model, request_of())

    model.close()

    assert await drain(model, request_of())
    assert server.connections == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forks with threads, as servers do
def test_a_forked_child_has_a_client_of_its_own(bedrock, request_of, drain):
    model, server = bedrock(["hi", "of the child", "ho"])
    asyncio.run(drain(model, request_of()))

    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(drain(model, request_of()))
            code = 0
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(drain(model, request_of()))
    assert [received.connection for received in server.requests] == [1, 2, 1]


# -- cancelling --------------------------------------------------------------------------------------------------


STALLS = {
    "in the stream": turn("half", stall=True),
    "before the first byte": turn(stall=True),
    "in a tool input": turn(use("add", {"a": 1}), stall=True),
}


@pytest.mark.parametrize("stalled", STALLS.values(), ids=STALLS)
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
async def test_cancelling_closes_the_connection_while_the_provider_is_silent(
    bedrock, request_of, drain, stalled, streaming
):
    model, server = bedrock([stalled, "and on"], streaming=streaming)
    task = asyncio.create_task(drain(model, request_of()))
    await asyncio.to_thread(server.stalled.wait, 10)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.to_thread(server.wait_streams_closed, 1.0)
    assert await drain(model, request_of())


async def test_closing_the_iterator_closes_the_connection(bedrock, request_of):
    model, server = bedrock([turn("half", stall=True)])

    async with aclosing(model.stream(request_of())) as events:
        async for event in events:
            if "contentBlockDelta" in event:
                break

    await asyncio.to_thread(server.wait_streams_closed, 1.0)
    assert server.open_streams == 0


async def test_cancelling_one_stream_leaves_the_others_alone(bedrock, request_of, outcome):
    go = threading.Event()
    model, server = bedrock(lambda received: turn("half", stall=True if "stop" in str(received.body) else go))
    kept = asyncio.create_task(outcome(model, request_of("keep")))
    stopped = asyncio.create_task(outcome(model, request_of("stop")))
    while server.open_streams < 2:  # noqa: ASYNC110 - the server lives in other threads
        await asyncio.sleep(0.01)

    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped

    go.set()
    assert (await kept).message["content"] == [{"text": "half"}]


def test_an_agent_is_cancelled_while_the_provider_is_silent(bedrock):
    model, server = bedrock([turn("half", stall=True), "and on"])
    agent = Agent(model=model, callback_handler=None)
    threading.Thread(target=lambda: (server.stalled.wait(10), agent.cancel())).start()

    result = agent("go")

    assert result.stop_reason == "cancelled"
    server.wait_streams_closed(1.0)
    assert str(agent("on")) == "and on\n"


async def test_a_call_that_is_cancelled_before_its_request_sends_none(bedrock, request_of, drain):
    model, server = bedrock(["never", "hi"])
    going, go = threading.Event(), threading.Event()
    get = model._source.get

    def slow():
        going.set()
        go.wait(10)
        return get()

    model._source.get = slow
    task = asyncio.create_task(drain(model, request_of()))
    await asyncio.to_thread(going.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    go.set()
    server.script("more")
    del model._source.get
    assert await drain(model, request_of())
    assert server.calls == 1
