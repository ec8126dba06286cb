"""Several models, limits of each, and repetitions: the plugins fallback, rate-limit, retry and limits together."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, HistoryEdit, ModelRetryStrategy, hookimpl
from ropewalk.errors import ContextWindowOverflowException, ModelThrottledException
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk.kits.model_errors import model_error
from ropewalk_fallback import FallbackModel
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

ONE_A_MINUTE = ("rate-limit", {"requests_per_minute": 1})


class Clock(Seam):
    """Passes as fast as it is waited for."""

    def __init__(self):
        self.seconds = 1_000.0

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        until = self.seconds + seconds
        await asyncio.sleep(0)
        self.seconds = max(self.seconds, until)


@pytest.fixture
def clock():
    with use_seam(Clock()) as seam:
        yield seam


def named(name, *turns, **options):
    model = ScriptedModel(list(turns), **options)
    model.model_id = name
    return model


def agent_of(*models, plugins=(), **parameters):
    return Agent(
        model=FallbackModel(models),
        plugins=["fallback", *plugins],
        callback_handler=None,
        **{"retry_strategy": ModelRetryStrategy(jitter=0), **parameters},
    )


def busy():
    return model_error("throttle", "Too many tokens", provider="p", code="ThrottlingException", retry_after=30)


def test_each_model_has_a_minute_of_its_own(ask, clock):
    agent = agent_of(named("a", busy(), "from a"), named("b", "from b"), plugins=[ONE_A_MINUTE])
    assert str(ask(agent, "go")) == "from b\n"
    assert clock.seconds == 1_000

    assert str(ask(agent, "go")) == "from a\n"
    assert clock.seconds == 1_060


def test_a_round_of_failures_waits_as_long_as_the_last_provider_asks(ask, clock):
    agent = agent_of(named("a", busy(), "from a"), named("b", busy()))
    result = ask(agent, "go")
    assert str(result) == "from a\n"
    assert clock.seconds == 1_030
    assert result.metrics.model_calls == 3
    assert result.state["fallback"]["switches"][0]["error"].startswith("p (ThrottlingException): Too many tokens: ")


def test_half_answers_of_two_models_leave_nothing_behind(ask, shape, clock):
    def broken(text):
        return turn(text, error=ModelThrottledException("slow"))

    agent = agent_of(named("a", broken("half a")), named("b", broken("half b")), named("c", "whole"))
    assert str(ask(agent, "go")) == "whole\n"
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


def test_an_overflow_of_the_largest_window_goes_to_the_context_plugins(ask, clock):
    class Shorten:
        name = "shorten"

        @hookimpl
        async def manage_context(self, request, reason):
            if reason == "overflow":
                return [HistoryEdit(request.ids[0], request.ids[1], ())]

            return None

    def long(request):
        if len(request.messages) > 2:
            raise ContextWindowOverflowException("too long")

        return "fits"

    small, large = ScriptedModel(long, context_window=10), ScriptedModel(long, context_window=20)
    small.model_id, large.model_id = "small", "large"
    agent = agent_of(small, large, plugins=[Shorten()])
    agent.messages = [
        {"role": "user", "content": [{"text": "old " * 100}]},
        {"role": "assistant", "content": [{"text": "older"}]},
    ]
    result = ask(agent, "go")
    assert str(result) == "fits\n"
    assert result.state["fallback"] == {
        "model": "large",
        "answers": {"large": 1},
        "switches": [{"from": "small", "to": "large", "failure": "overflow", "error": "too long"}],
    }


def test_a_run_that_fell_back_keeps_to_its_limits(ask, clock):
    model = named("b", *[turn("on", use("none"), usage=(10, 5))] * 5)
    agent = agent_of(named("a", busy()), model)
    result = ask(agent, "go", limits={"turns": 2})
    assert result.stop_reason == "limit_turns"
    assert model.calls == 2
    assert_valid_history(agent.messages)
