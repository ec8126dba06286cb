"""Model calls that fail and are repeated (conformance 140 and 148 to 150)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import Agent, ModelRetryStrategy
from ropewalk.errors import ContextWindowOverflowException, IncompleteStreamError, ModelThrottledException
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""

SLOW = ModelThrottledException("slower")


class Sleepers(Seam):
    """Sleeps until somebody cancels."""

    def __init__(self):
        self.asleep = threading.Event()

    async def sleep(self, seconds):
        self.asleep.set()
        await asyncio.sleep(PATIENCE)


def steady(**values):
    return ModelRetryStrategy(**{"jitter": 0, **values})


# -- 148: throttled, then well -----------------------------------------------------------------------------------


def test_two_throttles_are_two_events_and_three_calls(make_agent, events_of, waits):
    """Conformance 148."""
    agent, model = make_agent([SLOW, SLOW, "hi"], retry_strategy=steady())

    events = events_of(agent, "go")

    delays = [e["event_loop_throttled_delay"] for e in events if "event_loop_throttled_delay" in e]
    assert delays == waits == [4, 8]
    assert model.calls == 3
    assert str(events[-1]["result"]) == "hi\n"


def test_the_default_strategy_repeats_within_its_bounds(ask, make_agent, waits, shape):
    """Conformance 148."""
    agent, model = make_agent([SLOW, SLOW, "hi"])

    result = ask(agent, "go")

    assert (str(result), model.calls, result.metrics.model_calls, result.metrics.cycle_count) == ("hi\n", 3, 3, 1)
    assert 3.6 <= waits[0] <= 4
    assert 7.2 <= waits[1] <= 8
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "hi"}])]


def test_a_callback_handler_hears_of_each_wait(make_agent, waits):
    """Conformance 148."""
    heard = []
    agent, _ = make_agent(
        [SLOW, SLOW, "hi"], retry_strategy=steady(), callback_handler=lambda **event: heard.append(event)
    )
    agent("go")
    assert [e["event_loop_throttled_delay"] for e in heard if "event_loop_throttled_delay" in e] == [4, 8]


def test_a_call_of_a_later_turn_is_repeated_like_the_first(ask, make_agent, waits):
    """Conformance 148."""
    agent, model = make_agent([use("nobody", {}), SLOW, SLOW, "hi"], retry_strategy=steady())
    assert str(ask(agent, "go")) == "hi\n"
    assert (model.calls, waits) == (4, [4, 8])


@pytest.mark.parametrize(
    "fault", [turn("half", cut=True), turn("half", error=SLOW), turn("half", error=ConnectionResetError("reset"))]
)
def test_half_an_answer_is_dropped_and_consumers_are_told(make_agent, events_of, waits, shape, fault):
    """Conformance 148."""
    agent, _ = make_agent([fault, "whole"], retry_strategy=steady())

    events = events_of(agent, "go")

    events = [e for e in events if not e.get("complete")]
    assert [e["data"] for e in events if "data" in e] == ["half", "whole"]
    order = [
        next(key for key in ("data", "attempt_discarded", "result") if key in e)
        for e in events
        if {"data", "attempt_discarded", "result"} & set(e)
    ]
    assert order == ["data", "attempt_discarded", "data", "result"]
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


# -- 149: too often ----------------------------------------------------------------------------------------------


def test_the_error_of_the_last_attempt_reaches_the_caller(ask, make_agent, waits):
    """Conformance 149."""
    agent, model = make_agent([SLOW] * 3 + ["hi"], retry_strategy=steady(max_attempts=3))

    with pytest.raises(ModelThrottledException, match="slower"):
        ask(agent, "go")

    assert (model.calls, waits) == (3, [4, 8])
    assert str(ask(agent, "again")) == "hi\n"
    assert_valid_history(agent.messages)


def test_six_attempts_unless_told_otherwise(ask, make_agent, waits):
    """Conformance 149."""
    agent, model = make_agent([ModelThrottledException("slower")] * 7)
    with pytest.raises(ModelThrottledException):
        ask(agent, "go")

    assert (model.calls, len(waits)) == (6, 5)


def test_an_error_of_a_later_turn_is_the_same_error(ask, make_agent, waits):
    """Conformance 149 (B)."""
    agent, _ = make_agent([use("nobody", {}), SLOW, SLOW], retry_strategy=steady(max_attempts=2))
    with pytest.raises(ModelThrottledException, match="slower"):
        ask(agent, "go")


# -- 150: never, and nonsense ------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SLOW, IncompleteStreamError("cut"), ConnectionError("lost")], ids=repr)
def test_no_strategy_is_no_repetition(ask, make_agent, waits, error):
    """Conformance 150."""
    agent, model = make_agent([error, "hi"], retry_strategy=None)
    with pytest.raises(type(error)):
        ask(agent, "go")

    assert (model.calls, waits) == (1, [])


@pytest.mark.parametrize("value", ["exponential", 6, {"max_attempts": 3}, ModelRetryStrategy, ...], ids=str)
def test_what_is_no_strategy_is_a_value_error(value):
    """Conformance 150."""
    with pytest.raises(ValueError, match="retry_strategy="):
        Agent(model=ScriptedModel(["hi"]), retry_strategy=value)


@pytest.mark.parametrize("error", [ValueError("bad"), PermissionError("no"), ContextWindowOverflowException("long")])
def test_what_will_not_pass_is_not_repeated(ask, make_agent, waits, error):
    """Conformance 150."""
    agent, model = make_agent([error, "hi"])
    with pytest.raises(type(error)):
        ask(agent, "go")

    assert (model.calls, waits) == (1, [])


# -- 140: cancelled while it waits -------------------------------------------------------------------------------


def test_cancelling_ends_a_wait_at_once(ask, make_agent):
    """Conformance 140 (B)."""
    seam = Sleepers()
    agent, model = make_agent([turn("half", error=SLOW), "hi"])
    canceller = threading.Thread(target=lambda: seam.asleep.wait(PATIENCE) and agent.cancel())
    canceller.start()
    with use_seam(seam):
        result = ask(agent, "go")

    canceller.join()
    assert (result.stop_reason, model.calls, list(agent.messages)) == ("cancelled", 1, [])
    assert str(ask(agent, "again")) == "hi\n"
    assert_valid_history(agent.messages)


async def test_cancelling_the_task_ends_a_wait_too(make_agent):
    """Conformance 140 (B)."""
    seam = Sleepers()
    agent, _ = make_agent([SLOW, "hi"])
    with use_seam(seam):
        task = asyncio.create_task(agent.invoke_async("go"))
        async with asyncio.timeout(PATIENCE):
            while not seam.asleep.is_set():  # noqa: ASYNC110 - it belongs to no loop
                await asyncio.sleep(0)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert str(await agent.invoke_async("again")) == "hi\n"


async def test_a_consumer_that_cancels_on_hearing_of_the_wait_is_obeyed(make_agent, waits):
    """Conformance 140 (B)."""
    agent, model = make_agent([SLOW, "hi"], retry_strategy=steady())
    async for event in agent.stream_async("go"):
        if "event_loop_throttled_delay" in event:
            agent.cancel()

        result = event.get("result")

    assert (result.stop_reason, model.calls, waits) == ("cancelled", 1, [])
