"""A policy that fails, answers nonsense or does not answer lets nothing pass."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ropewalk import PluginError
from ropewalk.kits.calls.verdicts import Replace
from ropewalk_testing import assert_valid_history, use

MOMENTS = ["before_invocation", "before_model_call", "after_model_call", "before_tool_call", "after_tool_call"]


def raises(moment, subject):
    raise ZeroDivisionError("a bug of the policy")


async def hangs(moment, subject):
    await asyncio.Event().wait()


async def clings(moment, subject):
    """Does not answer, and goes on when it is cancelled the first time."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()

    await asyncio.Event().wait()


async def nonsense(moment, subject):
    return True


async def replaces_by_nothing(moment, subject):
    return Replace(None)


FAULTS = {
    "raises": (raises, ZeroDivisionError, "a bug of the policy"),
    "hangs": (hangs, PluginError, "the policy 'guard' did not answer within 0.01 s"),
    "clings": (clings, PluginError, "did not answer within 0.01 s"),
    "nonsense": (nonsense, PluginError, "intervene of plugin 'guard' answered True"),
    "replaces by nothing": (replaces_by_nothing, PluginError, "return Refuse"),
}


def failing(at, fault):
    async def rule(moment, subject, agent):
        if moment != at:
            return None

        answer = fault(moment, subject)
        return await answer if asyncio.iscoroutine(answer) else answer

    return rule


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("fault", "error", "message"), FAULTS.values(), ids=FAULTS)
async def test_nothing_passes(govern, make_agent, tools, moment, fault, error, message):
    tools.safe.answer = "what it did"
    govern(failing(moment, fault), holds_output=True, time_limit=0.01)
    agent = make_agent(["I call it.", use("safe", {}, id="T1")], "done")
    seen = []

    async def follow():
        async for event in agent.stream_async("Go."):
            seen.append(event)  # noqa: PERF401 - kept when an error follows

    with pytest.raises(error, match=message):
        await follow()

    place = MOMENTS.index(moment)
    assert agent.model.calls == (0 if place < 2 else 1)
    assert len(tools.safe.ran) == (0 if place < 4 else 1)
    assert ("I call it." in str(agent.messages) + str(seen)) == (place > 2)
    assert "what it did" not in str(agent.messages) + str(seen)
    assert_valid_history(agent.messages)


async def test_the_agent_can_be_used_again(govern, make_agent):
    guard = govern(failing("before_model_call", raises))
    agent = make_agent("hello")
    with pytest.raises(ZeroDivisionError):
        await agent.invoke_async("Go.")

    guard.rule = None

    assert str(await agent.invoke_async("Go on.")) == "hello\n"


async def test_an_error_of_a_policy_is_not_retried_as_one_of_the_model(govern, make_agent, plugin):
    async def decide_retry(self, failure):
        return 0.0

    govern(failing("after_model_call", raises))
    agent = make_agent("hello", "hello", plugins=[plugin("again", decide_retry=decide_retry)])

    with pytest.raises(ZeroDivisionError):
        await agent.invoke_async("Go.")

    assert agent.model.calls == 1


async def test_the_error_names_the_policy_and_where_it_comes_from(govern, make_agent):
    govern(failing("before_model_call", raises))

    with pytest.raises(ZeroDivisionError) as caught:
        await make_agent("hello").invoke_async("Go.")

    assert caught.value.__notes__ == ["in the hook intervene of the plugin guard (acme-guard 1.0)"]


async def test_a_hook_cannot_swallow_the_error_of_a_policy_and_answer_in_its_place(govern, make_agent, plugin):
    async def around_model_call(self, request, call_next):
        try:
            return await call_next(request)
        except ZeroDivisionError:
            from ropewalk import ModelOutcome

            return ModelOutcome.saying("never mind")

    govern(failing("after_model_call", raises))
    agent = make_agent("hello", plugins=[plugin("swallow", around_model_call=around_model_call)])

    with pytest.raises(ZeroDivisionError):
        await agent.invoke_async("Go.")

    assert "never mind" not in str(agent.messages)


async def test_cancelling_ends_the_wait_for_a_policy(govern, make_agent):
    waiting = asyncio.Event()

    async def rule(moment, subject, agent):
        if moment == "before_model_call":
            waiting.set()
            await asyncio.Event().wait()

    govern(rule)
    agent = make_agent("hello")
    task = asyncio.ensure_future(agent.invoke_async("Go."))
    await waiting.wait()
    agent.cancel()

    assert (await task).stop_reason == "cancelled"
    assert agent.model.calls == 0
