"""A call of the agent whose coroutine is thrown away half-way: it ends at once, and the history stays valid."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, use

from ropewalk import Agent


@pytest.mark.parametrize("place", ["model", "tool", "write"])
async def test_a_call_that_is_thrown_away_waits_for_nothing(place):
    reached = []

    async def wait_at(here):
        if here == place and not reached:
            reached.append(here)
            await asyncio.Event().wait()

    async def model():
        await wait_at("model")
        yield {"messageStop": {"stopReason": "end_turn"}}

    async def tool(_call):
        await wait_at("tool")

    async def write_records(self, records):
        await asyncio.sleep(0)
        if any(record.kind == "tool_started" for record in records):
            await wait_at("write")

    agent = Agent(
        model=FakeModel(model if place == "model" else use("look"), "done"),
        tools=[FakeTool("look", tool)],
        plugins=[make_plugin(write_records=write_records)],
    )
    call = agent.invoke_async("go")
    for _ in range(100):  # as an event loop does
        call.send(None)
        if reached:
            break

    call.close()  # raises a RuntimeError when something waits here

    assert reached == [place]
    assert problems(agent.messages) == []
    assert str(await agent.invoke_async("again")) == "done\n"
