"""The strategy: its values, its delays, its answers."""

from __future__ import annotations

import random

import pytest

from ropewalk import Agent, Failure, hookimpl
from ropewalk.errors import ModelError, ModelThrottledException, PluginError
from ropewalk_retry import ModelRetryStrategy, RetryPlugin


def failure(attempt=1, error=None):
    return Failure(error or ModelThrottledException("slower"), attempt, streamed=False, waited=0.0)


async def delays(strategy, count, error=None):
    return [await strategy.decide_retry(failure(attempt, error)) for attempt in range(1, count + 1)]


@pytest.fixture
def chance(monkeypatch):
    """Chance always answers what the test says, half by default."""
    said = [0.5]
    monkeypatch.setattr(random, "random", lambda: said[0])
    return said


async def test_waits_double_from_four_seconds_and_the_sixth_attempt_is_the_last():
    assert await delays(ModelRetryStrategy(jitter=0), 6) == [4, 8, 16, 32, 64, None]


async def test_waits_stop_growing_at_the_longest():
    strategy = ModelRetryStrategy(max_attempts=10, max_delay=20, jitter=0)
    assert await delays(strategy, 10) == [4, 8, 16, 20, 20, 20, 20, 20, 20, None]


async def test_thousands_of_attempts_do_not_overflow():
    strategy = ModelRetryStrategy(max_attempts=10**6, jitter=0)
    assert await strategy.decide_retry(failure(99_999)) == 240


async def test_jitter_shortens_a_wait_by_its_share_at_most(chance):
    chance[0] = 0.5
    assert await delays(ModelRetryStrategy(), 2) == pytest.approx([3.8, 7.6])
    chance[0] = 1.0
    assert await delays(ModelRetryStrategy(jitter=1), 2) == [0, 0]


async def test_what_the_provider_asks_is_waited_and_jitter_never_shortens_it(chance):
    error = ModelThrottledException("slower", retry_after=30)
    assert await delays(ModelRetryStrategy(jitter=0), 1, error) == [30]
    assert await delays(ModelRetryStrategy(jitter=0.1), 1, error) == [pytest.approx(31.5)]
    assert await delays(ModelRetryStrategy(jitter=1, max_delay=40), 1, error) == [40]


async def test_a_provider_that_asks_for_less_than_the_backoff_gets_less():
    error = ModelThrottledException("slower", retry_after=0)
    assert await delays(ModelRetryStrategy(jitter=0), 3, error) == [0, 0, 0]


async def test_a_provider_that_asks_for_too_long_a_wait_is_given_up_with_a_note():
    error = ModelThrottledException("slower", retry_after=3600)
    assert await delays(ModelRetryStrategy(), 2, error) == [None, None]
    (note,) = error.__notes__
    assert note.startswith("the provider asks to wait 3600 s, longer than max_delay=240")


@pytest.mark.parametrize("odd", [-1, float("nan"), float("inf"), True, "30"])
async def test_a_wait_that_is_no_number_of_seconds_is_passed_over(odd):
    error = ModelThrottledException("slower", retry_after=odd)
    assert await delays(ModelRetryStrategy(jitter=0), 1, error) == [4]


async def test_the_last_attempt_leaves_a_note_once():
    error = ModelThrottledException("slower")
    strategy = ModelRetryStrategy(max_attempts=2)
    for _ in range(2):
        assert await strategy.decide_retry(failure(2, error)) is None

    assert error.__notes__ == ["the model call was given up after 2 attempts"]


async def test_one_attempt_is_never_to_repeat():
    error = ModelThrottledException("slower")
    assert await delays(ModelRetryStrategy(max_attempts=1), 1, error) == [None]
    assert not hasattr(error, "__notes__")


async def test_what_is_retryable_can_be_overridden():
    class Stubborn(ModelRetryStrategy):
        def is_retryable(self, error):
            return isinstance(error, ValueError)

    assert await delays(Stubborn(jitter=0), 1, ValueError("again")) == [4]
    assert await delays(Stubborn(jitter=0), 1, ModelThrottledException("slower")) == [None]


async def test_a_strategy_keeps_nothing_from_call_to_call():
    strategy = ModelRetryStrategy(jitter=0)
    before = dict(vars(strategy))
    first = await delays(strategy, 6)
    assert await delays(strategy, 6) == first
    assert vars(strategy) == before


@pytest.mark.parametrize(
    "values",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"max_attempts": 2.0},
        {"max_attempts": None},
        {"initial_delay": -1},
        {"initial_delay": "4"},
        {"max_delay": float("inf")},
        {"max_delay": float("nan")},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": True},
    ],
    ids=str,
)
def test_a_value_that_is_none_is_refused_by_name(values):
    (name,) = values
    with pytest.raises(ValueError, match=f"ModelRetryStrategy: {name}="):
        ModelRetryStrategy(**values)


def test_its_text_shows_its_values():
    expected = "ModelRetryStrategy(max_attempts=6, initial_delay=4, max_delay=240, jitter=0.1)"
    assert repr(ModelRetryStrategy()) == expected


# -- the parameter -----------------------------------------------------------------------------------------------


def strategies(agent):
    return [plugin for plugin in agent.hooks.plugins if plugin.name == "retry"]


def test_an_agent_repeats_unless_told_otherwise():
    assert [type(each) for each in strategies(Agent())] == [RetryPlugin]
    assert strategies(Agent(retry_strategy=None)) == []


def test_a_strategy_takes_the_place_of_the_default():
    strategy = ModelRetryStrategy(max_attempts=2)
    assert strategies(Agent(retry_strategy=strategy)) == [strategy]


@pytest.mark.parametrize("value", ["often", 3, ..., ModelRetryStrategy, print], ids=repr)
def test_what_is_no_strategy_is_refused_where_the_agent_is_made(value):
    """Conformance 150."""
    with pytest.raises(ValueError, match=r"retry_strategy=.* is no retry strategy: give ModelRetryStrategy"):
        Agent(retry_strategy=value)


def test_a_plugin_that_decides_no_retry_is_no_strategy():
    class Watcher:
        name = "watcher"

        @hookimpl
        async def on_event(self, event): ...

    with pytest.raises(ValueError, match=r"retry_strategy=.* 'watcher' .*has no hook decide_retry.* plugins="):
        Agent(retry_strategy=Watcher())


def test_options_come_from_the_list_of_plugins():
    (plugin,) = strategies(Agent(plugins=[("retry", {"max_attempts": 3, "jitter": 0})]))
    assert (plugin.max_attempts, plugin.initial_delay, plugin.jitter) == (3, 4, 0)


def test_a_wrong_option_is_refused():
    with pytest.raises(PluginError, match="options of plugin 'retry' are wrong: max_attempts"):
        Agent(plugins=[("retry", {"max_attempts": 0})])


# -- with an agent -----------------------------------------------------------------------------------------------


async def test_two_agents_that_share_a_strategy_each_have_all_attempts(waits):
    from ropewalk_testing import ScriptedModel

    shared = ModelRetryStrategy(max_attempts=3, jitter=0)
    slow = ModelThrottledException("slower")
    for _ in range(2):
        agent = Agent(model=ScriptedModel([slow, slow, "ok"]), retry_strategy=shared, callback_handler=None)
        assert str(await agent.invoke_async("go")) == "ok\n"

    assert waits == [4, 8, 4, 8]


async def test_a_second_turn_has_all_attempts_too(waits):
    from ropewalk_testing import ScriptedModel

    slow = ModelError("busy", retryable=True)
    script = [slow, slow, "one", slow, slow, "two"]
    strategy = ModelRetryStrategy(max_attempts=3, jitter=0)
    agent = Agent(model=ScriptedModel(script), retry_strategy=strategy, callback_handler=None)
    assert [str(await agent.invoke_async("go")) for _ in range(2)] == ["one\n", "two\n"]
    assert waits == [4, 8, 4, 8]
