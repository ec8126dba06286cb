"""Agents that wait for their turn."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import weakref

import pytest

from ropewalk import Agent, HistoryEdit, ModelOutcome, current_run, hookimpl
from ropewalk.errors import ModelError, ModelThrottledException, PluginError
from ropewalk_rate_limit import RateLimitPlugin, RequestTooLargeError
from ropewalk_rate_limit.accounts import account_of
from ropewalk_testing import ScriptedModel, turn, use


class Echo:
    tool_name = "echo"
    tool_spec = {"name": "echo", "description": "Echo.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "ok"}]}


def model_of(*turns, name="a"):
    model = ScriptedModel(list(turns))
    model.model_id = name
    return model


def agent_of(model, plugins=(), **options):
    return Agent(model=model, tools=[Echo()], plugins=[("rate-limit", options), *plugins], callback_handler=None)


async def test_agents_of_one_model_share_its_requests(clock):
    agents = [agent_of(model_of("hi"), requests_per_minute=2) for _ in range(3)]
    results = [await agent.invoke_async("Hello.") for agent in agents]
    assert clock.slept == [60]
    assert [result.state.get("rate_limit") for result in results] == [None, None, {"waits": 1, "seconds": 60}]


async def test_models_are_counted_apart(clock):
    for name in "abc":
        await agent_of(model_of("hi", name=name), requests_per_minute=1).invoke_async("Hello.")

    assert clock.slept == []


async def test_every_turn_and_every_repeated_attempt_is_a_request(clock):
    model = model_of(use("echo"), ModelThrottledException("slow"), "end")
    agent = agent_of(model, [("retry", {"initial_delay": 0})], requests_per_minute=1)
    result = await agent.invoke_async("Hello.")
    assert result.state["rate_limit"] == {"waits": 2, "seconds": 120}


async def test_tokens_count_as_the_model_says(clock):
    model = model_of(*[turn("hi", usage=(80, 10)), turn("hi", usage=(5, 5)), turn("hi", usage=(5, 5))])
    agent = agent_of(model, tokens_per_minute=100)
    await agent.invoke_async("Hello.")
    assert clock.slept == []
    await agent.invoke_async("Hello.")  # 90 used, about 100 to come
    assert clock.slept == [60]
    await agent.invoke_async("Hello.")  # 10 used, about 25 to come
    assert clock.slept == [60]


async def test_the_next_request_is_thought_to_be_as_large_as_the_last_was(clock):
    agent = agent_of(model_of(turn("hi", usage=(60, 10)), turn("hi", usage=(5, 5))), tokens_per_minute=100)
    await agent.invoke_async("Hello.")
    await agent.invoke_async("Hello.")
    assert clock.slept == [60]


async def test_a_request_that_can_never_fit_is_an_error_and_nobody_waits(clock):
    model = model_of("hi")
    agent = agent_of(model, tokens_per_minute=100)
    with pytest.raises(
        RequestTooLargeError, match=r"tokens to a is larger than tokens_per_minute=100: raise"
    ) as caught:
        await agent.invoke_async("word " * 1_000)

    assert isinstance(caught.value, ModelError)
    assert not caught.value.retryable
    assert caught.value.tokens >= 1_000
    assert model.calls == 0
    assert clock.slept == []
    for same in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert (str(same), same.tokens, same.allowed) == (str(caught.value), caught.value.tokens, 100)


async def test_a_conversation_whose_messages_have_become_shorter_is_not_too_large(clock):
    class Shorten:
        name = "shorten"

        @hookimpl
        async def manage_context(self, request, reason):
            if reason != "before_model" or len(request.messages) == 1:
                return []

            short = {"role": "user", "content": [{"text": "short"}]}
            return [HistoryEdit(request.ids[0], request.ids[0], (short,), "shorter")]

    model = model_of(turn("hi", usage=(90, 5)), turn("hi", usage=(5, 5)))
    agent = agent_of(model, [Shorten()], tokens_per_minute=120)
    await agent.invoke_async("w" * 200)
    await agent.invoke_async("x" * 120)
    assert model.calls == 2


async def test_a_guess_at_the_answer_makes_no_request_too_large(clock):
    agent = agent_of(model_of(turn("hi", usage=(10, 95)), turn("hi", usage=(1, 1))), tokens_per_minute=110)
    await agent.invoke_async("Hello.")
    await agent.invoke_async("Hello.")
    assert clock.slept == [60]


async def test_single_models_may_have_limits_of_their_own(clock):
    options = {"requests_per_minute": 1, "models": {"b": {"requests_per_minute": 3}, "c": {}}}
    for name in "bbbccccc":
        await agent_of(model_of("hi", name=name), **options).invoke_async("Hello.")

    assert clock.slept == []
    await agent_of(model_of("hi", name="b"), **options).invoke_async("Hello.")
    assert clock.slept == [60]


async def test_without_limits_nothing_is_counted(clock):
    agent = agent_of(model_of("hi", name="free"))
    result = await agent.invoke_async("Hello.")
    assert agent.plugin_state("rate-limit").get() == {}
    assert "rate_limit" not in result.state


async def test_cancelling_ends_the_wait_and_gives_the_place_back(stopped, settled):
    model = model_of("first", "third")
    agents = [agent_of(model, requests_per_minute=1) for _ in range(3)]
    await agents[0].invoke_async("Hello.")
    tasks = [asyncio.ensure_future(agent.invoke_async("Hello.")) for agent in agents[1:]]
    await settled()
    assert account_of(model).waiting == 2

    agents[1].cancel()
    result = await tasks[0]
    assert result.stop_reason == "cancelled"
    assert account_of(model).waiting == 1
    await stopped.move(60)
    assert str(await tasks[1]) == "third\n"
    assert model.calls == 2


def test_cancelling_from_another_thread_ends_the_wait(stopped):
    model = model_of("first")
    agent = agent_of(model, requests_per_minute=1)
    agent("Hello.")

    async def watch():
        call = asyncio.create_task(asyncio.to_thread(agent, "Again."))
        for _ in range(2_000):
            if account_of(model).waiting:
                break

            await asyncio.sleep(0.005)

        agent.cancel()
        return await call

    assert asyncio.run(watch()).stop_reason == "cancelled"
    assert account_of(model).waiting == 0


async def test_agents_that_wait_at_once_all_get_their_turn(clock):
    model = ScriptedModel(lambda request: "hi")
    agents = [agent_of(model, requests_per_minute=3) for _ in range(10)]
    results = await asyncio.gather(*(agent.invoke_async("Hello.") for agent in agents))
    assert [str(result) for result in results] == ["hi\n"] * 10
    assert clock.seconds == 1_180


async def test_agents_in_threads_and_loops_share_as_well(clock):
    model = ScriptedModel(lambda request: "hi")
    agents = [agent_of(model, requests_per_minute=2) for _ in range(4)]
    await asyncio.gather(*(asyncio.to_thread(asyncio.run, agent.invoke_async("Hello.")) for agent in agents[:2]))
    await asyncio.gather(*(asyncio.to_thread(agent, "Hello.") for agent in agents[2:]))
    assert clock.seconds == 1_060


async def test_what_a_hook_answers_in_place_of_the_model_is_no_request(clock):
    class Cache:
        name = "cache"

        @hookimpl
        async def around_model_call(self, request, call_next):
            return ModelOutcome.saying("cached")

    for _ in range(3):
        await agent_of(model_of(), [Cache()], requests_per_minute=1).invoke_async("Hello.")

    assert clock.slept == []


async def test_a_call_that_fails_counts_as_estimated(clock):
    agent = agent_of(model_of(ModelError("no"), "hi"), tokens_per_minute=80)
    with pytest.raises(ModelError, match="no"):
        await agent.invoke_async("x" * 240)

    await agent.invoke_async("y" * 8)
    assert clock.slept == [60]


async def test_an_agent_that_has_waited_is_freed_at_once(clock):
    agents = [agent_of(model_of("hi"), requests_per_minute=1) for _ in range(2)]
    for agent in agents:
        await agent.invoke_async("Hello.")

    gone = [weakref.ref(agent) for agent in agents]
    gc.disable()
    try:
        del agents, agent
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"tokens_per_minute": -5}, "tokens_per_minute"),
        ({"requests_per_minute": "many"}, "requests_per_minute"),
        ({"models": {"a": {"request_per_minute": 1}}}, "models.a.request_per_minute"),
        ({"request_per_minute": 1}, "did you mean 'requests_per_minute'"),
    ],
)
def test_wrong_options_are_refused_by_name(options, match):
    with pytest.raises(PluginError, match=match):
        agent_of(model_of("hi"), **options)


def test_the_plugin_can_be_made_without_options():
    assert RateLimitPlugin().name == "rate-limit"


def test_a_plugin_without_any_limit_says_so(caplog):
    Agent(model=ScriptedModel(["hi"]), plugins=["rate-limit"], callback_handler=None)

    assert "no limit: give requests_per_minute" in caplog.text
    caplog.clear()
    Agent(model=ScriptedModel(["hi"]), plugins=[("rate-limit", {"requests_per_minute": 9})], callback_handler=None)
    assert caplog.text == ""


# -- runs that pause ---------------------------------------------------------------------------------------------


class AsksAfterTheModel:
    name = "asks"

    @hookimpl
    async def around_model_call(self, request, call_next):
        outcome = await call_next(request)
        current_run().interrupt("go on?")
        return outcome


def answers(result):
    return [{"interruptResponse": {"interruptId": each.id, "response": True}} for each in result.interrupts]


async def test_an_answer_that_came_before_a_pause_is_counted_once(clock):
    model = model_of(turn("hi", usage=(10, 5)))
    agent = agent_of(model, [AsksAfterTheModel()], requests_per_minute=1, tokens_per_minute=100_000)
    result = await agent.invoke_async("Hello.")
    assert str(await agent.invoke_async(answers(result))) == "hi\n"
    assert model.calls == 1
    assert clock.slept == []


async def test_what_a_run_waited_before_a_pause_is_told_with_the_rest(clock):
    model = model_of("other", use("echo", {}), "done")
    agent = agent_of(model, [AsksAfterTheModel()], requests_per_minute=1)
    await agent_of(model, requests_per_minute=1).invoke_async("Hello.")
    result = await agent.invoke_async("Hello.")
    while result.interrupts:
        result = await agent.invoke_async(answers(result))

    assert clock.slept == [60, 60]
    assert result.state["rate_limit"] == {"waits": 2, "seconds": 120}
