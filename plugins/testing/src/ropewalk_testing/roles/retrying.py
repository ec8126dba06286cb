"""What every retry strategy keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from ropewalk import ModelThrottledException
from ropewalk.errors import ModelError
from ropewalk.kits.calls.outcomes import Failure
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.roles.common import Role, ended, make_agent, no_waits, run, until, within
from ropewalk_testing.scripted import ScriptedModel

ENOUGH = 200
"""A strategy that repeats a call so often does not give up."""


class RetryConformance(Role):
    """Tests that a strategy, a plugin with `decide_retry`, passes. A subclass named `Test...` has `strategy()`."""

    def strategy(self) -> Any:
        """Makes the strategy; to be overridden. It repeats a throttled call at least once."""
        raise NotImplementedError(f"{type(self).__name__}: give a method strategy() that makes the one under test")

    def passing(self) -> Exception:
        """A new error that may pass."""
        return ModelThrottledException("slow down")

    def lasting(self) -> Exception:
        """A new error that will not pass."""
        return ModelError("no such model")

    async def test_a_call_that_failed_for_now_is_repeated(self) -> None:
        """After a wait of some seconds or none."""
        agent = make_agent([self.passing(), "hello"], plugins=[self.strategy()])
        with no_waits() as waited:
            result = await run(agent)

        assert str(result) == "hello\n"
        assert len(waited) == 1
        assert 0 <= waited[0] < math.inf

    async def test_a_call_that_failed_for_good_is_not(self) -> None:
        """The error goes to the caller, as it is."""
        error = self.lasting()
        agent = make_agent([error, "never"], plugins=[self.strategy()])
        with no_waits(), pytest.raises(type(error)) as caught:
            await within(agent.invoke_async("Go."))

        assert caught.value is error
        assert agent.model.calls == 1
        assert_valid_history(agent.messages)

    async def test_it_gives_up(self) -> None:
        """With the model's last error, after a number of attempts."""
        model = ScriptedModel(lambda _: self.passing())
        agent = make_agent(model, plugins=[self.strategy()])
        with no_waits() as waited, pytest.raises(type(self.passing())):
            await within(_limited(agent, model))

        assert 1 < model.calls < ENOUGH
        assert len(waited) == model.calls - 1
        assert_valid_history(agent.messages)

    async def test_every_delay_is_a_number_of_seconds(self) -> None:
        """Or None, for any attempt, however late."""
        strategy = self.strategy()
        for attempt in (1, 2, 3, 10, 100, 1_000, 10_000):
            delay = await _ask(strategy, Failure(self.passing(), attempt, False, 0.0))
            assert delay is None or (isinstance(delay, int | float) and 0 <= delay < math.inf), delay

    async def test_it_is_not_sooner_than_the_provider_asks(self) -> None:
        """`retry_after` of the error, in seconds: it waits that long, or gives up."""
        for asked in (0.5, 30.0, 100_000.0):
            error: Any = self.passing()
            error.retry_after = asked
            delay = await _ask(self.strategy(), Failure(error, 1, False, 0.0))
            assert delay is None or delay >= asked, f"waits {delay} s, and failure.error.retry_after asks for {asked} s"

    async def test_odd_wishes_of_a_provider_do_no_harm(self) -> None:
        """They are passed over."""
        for asked in (math.nan, math.inf, -1, "soon", None, True):
            error: Any = self.passing()
            error.retry_after = asked
            delay = await _ask(self.strategy(), Failure(error, 1, False, 0.0))
            assert delay is None or 0 <= delay < math.inf

    async def test_each_turn_is_counted_anew(self) -> None:
        """Also of another agent with the same strategy: what one used up is no other's."""
        strategy = self.strategy()
        spent = ScriptedModel(lambda _: self.passing())
        with no_waits():
            with pytest.raises(type(self.passing())):
                await within(_limited(make_agent(spent, plugins=[strategy]), spent))

            fresh = make_agent([self.passing(), "one", self.passing(), "two"], plugins=[strategy])
            assert [str(await run(fresh)), str(await run(fresh))] == ["one\n", "two\n"]

    async def test_cancelling_ends_the_wait(self) -> None:
        """Nobody is called again."""
        model = ScriptedModel(lambda _: self.passing())
        agent = make_agent(model, plugins=[self.strategy()])
        task = asyncio.ensure_future(agent.invoke_async("Go."))
        await until(lambda: model.calls, "the model was not called")
        for _ in range(20):
            await asyncio.sleep(0)

        agent.cancel()
        try:
            result = await ended(task)
        except type(self.passing()):
            pytest.skip("it does not wait, so there is nothing to be cancelled")

        assert result.stop_reason == "cancelled"
        assert_valid_history(agent.messages)


async def _ask(strategy: Any, failure: Failure) -> Any:
    agent = make_agent(["unused"], plugins=[strategy])
    return await agent.hooks.decide_retry(failure, agent)


async def _limited(agent: Any, model: ScriptedModel) -> Any:
    """Calls the agent, and cancels it when its model was called far too often."""
    task = asyncio.ensure_future(agent.invoke_async("Go."))
    while not task.done():
        if model.calls >= ENOUGH:
            agent.cancel()
            await task
            raise AssertionError(f"it has repeated a call {ENOUGH} times and does not give up")

        await asyncio.sleep(0)

    return await task
