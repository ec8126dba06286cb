"""Handlers that raise, answer nonsense, or never answer."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref

import pytest

from ropewalk_interventions import HandlerAnswerError, HandlerTimeoutError, InterventionError, Proceed, Transform
from ropewalk_testing import ScriptedModel, assert_valid_history, turn

BEFORE = ["before_invocation", "before_model_call", "before_tool_call"]
MOMENTS = [*BEFORE, "after_model_call", "after_tool_call"]


def failing(event):
    raise ValueError("the key is hunter2")


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_stops_the_run_and_names_the_handler(make_agent, handler, moment):
    agent = make_agent(handler("broken", **{moment: failing}))

    with pytest.raises(ValueError, match="hunter2") as caught:
        agent("go")

    assert f"raised by {moment} of the intervention handler 'broken'" in caught.value.__notes__
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_that_proceeds_is_logged(make_agent, handler, caplog, danger, moment):
    agent = make_agent(handler("broken", on_error="proceed", **{moment: failing}))

    with caplog.at_level(logging.WARNING, "ropewalk.interventions"):
        assert str(agent("go")) == "done\n"

    assert danger.ran == [{"path": "x"}]
    assert f"{moment} of the intervention handler 'broken' failed" in caplog.text
    assert "hunter2" in caplog.text


DENIED = "DENIED: the handler 'broken' failed (ValueError)"


@pytest.mark.parametrize("moment", ["before_invocation", "before_model_call", "after_model_call"])
def test_an_error_that_denies_keeps_the_model_or_its_answer_out(make_agent, handler, moment):
    agent = make_agent(handler("broken", on_error="deny", **{moment: failing}), turns=["the secret"])

    assert str(agent("go")) == f"{DENIED}\n"
    assert "secret" not in str(agent.messages)
    assert "hunter2" not in str(agent.messages)


@pytest.mark.parametrize(("moment", "ran"), [("before_tool_call", 0), ("after_tool_call", 1)])
def test_an_error_that_denies_keeps_the_tool_or_its_result_out(make_agent, handler, outcome, danger, moment, ran):
    agent = make_agent(handler("broken", on_error="deny", **{moment: failing}))

    agent("go")

    assert outcome(agent) == {"A": ("error", DENIED)}
    assert len(danger.ran) == ran


@pytest.mark.parametrize("on_error", ["throw", "proceed", "deny"])
@pytest.mark.parametrize("answer", [None, "proceed", Proceed, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_answer_that_is_no_action_is_a_type_error(make_agent, handler, moment, answer, on_error):
    agent = make_agent(handler("odd", on_error=on_error, **{moment: lambda event: answer}))

    with pytest.raises(TypeError, match=f"{moment} of the intervention handler 'odd' returned") as caught:
        agent("go")

    assert isinstance(caught.value, HandlerAnswerError)
    assert_valid_history(agent.messages)


async def never(event):
    await asyncio.Event().wait()


def stuck(release):
    def wait(event):
        release.wait(60)
        return Proceed()

    return wait


@pytest.fixture
def release():
    """Lets threads go at the end of a test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_handler_that_never_answers_has_failed(make_agent, handler, release, moment, blocks):
    body = stuck(release) if blocks else never
    agent = make_agent(handler("slow", time_limit=0.05, **{moment: body}))

    with pytest.raises(HandlerTimeoutError, match=f"{moment} of the intervention handler 'slow' did not answer") as it:
        agent("go")

    assert isinstance(it.value, TimeoutError)
    assert isinstance(it.value, InterventionError)
    assert_valid_history(agent.messages)


def test_a_handler_that_never_answers_may_deny(make_agent, handler, outcome, danger):
    agent = make_agent(handler("slow", time_limit=0.05, on_error="deny", before_tool_call=never))

    agent("go")

    assert outcome(agent) == {"A": ("error", "DENIED: the handler 'slow' failed (HandlerTimeoutError)")}
    assert danger.ran == []


def test_the_time_limit_covers_a_transform_too(make_agent, handler):
    agent = make_agent(handler(time_limit=0.05, before_tool_call=lambda event: Transform(never)))

    with pytest.raises(HandlerTimeoutError, match="apply of the intervention handler"):
        agent("go")


async def test_a_handler_that_is_too_late_is_cancelled(make_agent, handler):
    cancelled = asyncio.Event()

    async def wait(event):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    agent = make_agent(handler(time_limit=0.05, on_error="proceed", before_tool_call=wait))

    assert str(await agent.invoke_async("go")) == "done\n"
    async with asyncio.timeout(30):
        await cancelled.wait()


@pytest.mark.parametrize("time_limit", [None, 30])
async def test_cancelling_the_agent_ends_the_wait_for_a_handler(make_agent, handler, time_limit, danger):
    asked = asyncio.Event()

    async def wait(event):
        asked.set()
        await asyncio.Event().wait()

    agent = make_agent(handler(time_limit=time_limit, before_tool_call=wait))
    running = asyncio.ensure_future(agent.invoke_async("go"))
    await asked.wait()
    agent.cancel()

    assert (await running).stop_reason == "cancelled"
    assert danger.ran == []


async def test_handlers_with_a_time_limit_may_be_plain_or_async(make_agent, handler, danger):
    async def awaited(event):
        return Proceed()

    agent = make_agent(
        handler("a", time_limit=30, before_tool_call=awaited),
        handler("b", time_limit=30, before_tool_call=lambda event: Proceed()),
    )

    await agent.invoke_async("go")

    assert danger.ran == [{"path": "x"}]


async def test_a_handler_with_a_time_limit_that_exits_takes_no_other_run_along(make_agent, handler):
    def leave(event):
        raise SystemExit(3)

    stalled = ScriptedModel([turn("fine", stall=True)])
    other = make_agent(turns=stalled)
    task = asyncio.create_task(other.invoke_async("go"))
    await stalled.wait_stalled()

    with pytest.raises(SystemExit):
        await make_agent(handler(time_limit=30, before_tool_call=leave)).invoke_async("go")

    stalled.release()
    assert (await task).stop_reason == "end_turn"


async def test_an_agent_is_freed_at_once_after_a_handler_with_a_time_limit_has_failed(make_agent, handler):
    async def fail(event):
        raise ValueError("no")

    agent = make_agent(handler(time_limit=30, before_tool_call=fail))
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no"):
            await agent.invoke_async("go")

        gone = weakref.ref(agent)
        del agent
        await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()
