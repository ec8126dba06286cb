"""A policy that wants to end the process ends its own run; other runs on the same event loop go on."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk_testing import turn, use

MOMENTS = ["before_invocation", "before_model_call", "after_model_call", "before_tool_call", "after_tool_call"]


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_what_it_raises_goes_to_the_caller_and_nothing_passes(govern, make_agent, tools, moment, ending):
    async def rule(now, subject, agent):
        if now == moment and agent.name == "ends":
            raise ending("no more")

    govern(rule)
    agent = make_agent(use("safe", {}, id="T1"), "done", name="ends")
    other = make_agent(turn("hello", stall=True))
    beside = asyncio.ensure_future(other.invoke_async("Go."))
    await other.model.wait_stalled()

    with pytest.raises(ending, match="no more"):
        await agent.invoke_async("Go.")

    other.model.release()
    assert str(await beside) == "hello\n"
    assert agent.model.calls == (0 if moment in MOMENTS[:2] else 1)
    assert bool(tools.safe.ran) == (moment == "after_tool_call")


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_loop_behind_synchronous_calls_lives_on(govern, make_agent, moment):
    async def rule(now, subject, agent):
        if now == moment and agent.name == "ends":
            raise SystemExit(3)

    govern(rule)
    with pytest.raises(SystemExit):
        make_agent(use("safe", {}, id="T1"), "done", name="ends")("Go.")

    assert str(make_agent("hello")("Go.")) == "hello\n"
