"""Agents that fall back."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from ropewalk import Agent, ModelOutcome, current_run, hookimpl
from ropewalk.errors import (
    ContextWindowOverflowException,
    MissingPluginError,
    ModelError,
    ModelThrottledException,
    PluginError,
    UnknownModelError,
)
from ropewalk.kits.model_errors import model_error
from ropewalk_fallback import FallbackModel, FallbackPlugin
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


class Echo:
    tool_name = "echo"
    tool_spec = {"name": "echo", "description": "Echo.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    def __init__(self, body=None):
        self.body = body

    async def invoke(self, call):
        text = await self.body() if self.body else "ok"
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def slow(text="slow"):
    return ModelThrottledException(text)


def agent_of(*models, body=None, plugins=(), **options):
    return Agent(
        model=FallbackModel(models, **options),
        tools=[Echo(body)],
        plugins=["fallback", *plugins],
        callback_handler=None,
    )


def history(agent):
    return [(m["role"], [block.get("text") for block in m["content"]]) for m in agent.messages]


# -- who answers -------------------------------------------------------------------------------------------------


async def test_the_result_says_who_answered_and_what_went_before(named, waits):
    agent = agent_of(named("a", slow("a is slow")), named("b", "from b"))
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from b\n"
    assert result.state["fallback"] == {
        "model": "b",
        "answers": {"b": 1},
        "switches": [{"from": "a", "to": "b", "failure": "throttle", "error": "a is slow"}],
    }
    assert result.metrics.model_calls == 2
    assert result.metrics.cycle_count == 1
    assert waits == []


async def test_a_run_without_a_failure_says_so_too(named):
    result = await agent_of(named("a", "from a"), named("b")).invoke_async("Hello.")
    assert result.state["fallback"] == {"model": "a", "answers": {"a": 1}, "switches": []}


async def test_a_run_stays_with_the_model_that_answers_and_the_next_begins_with_the_first(named, waits):
    first = named("a", use("echo"), slow(), "from a")
    second = named("b", use("echo"), "from b")
    agent = agent_of(first, second)
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from b\n"
    assert result.state["fallback"]["answers"] == {"a": 1, "b": 2}
    assert str(await agent.invoke_async("Again.")) == "from a\n"
    assert_valid_history(agent.messages)


async def test_the_half_answer_of_a_model_is_dropped_and_followers_are_told(named, waits):
    agent = agent_of(named("a", turn("half", error=slow("broke off"))), named("b", "whole"))
    events = [event async for event in agent.stream_async("Hello.")]
    [discarded] = [event["attempt_discarded"] for event in events if "attempt_discarded" in event]
    assert discarded == {"attempt": 1, "reason": "a failed, b is next: broke off"}
    assert history(agent) == [("user", ["Hello."]), ("assistant", ["whole"])]
    assert waits == []


@pytest.mark.parametrize("broken", [turn("half", cut=True), turn(raw=[{"contentBlockDelta": 7}])], ids=["cut", "odd"])
async def test_a_stream_that_is_none_counts_as_a_failure_of_its_model(named, broken):
    result = await agent_of(named("a", broken), named("b", "whole")).invoke_async("Hello.")
    assert result.state["fallback"]["model"] == "b"
    assert result.state["fallback"]["answers"] == {"b": 1}
    assert result.state["fallback"]["switches"][0]["failure"] == "transient"


# -- which failures ----------------------------------------------------------------------------------------------


async def test_wrong_credentials_are_told_unless_they_are_named(named):
    refused = model_error("auth", "expired", provider="p")
    with pytest.raises(ModelError, match="expired"):
        await agent_of(named("a", refused), named("b", "from b")).invoke_async("Hello.")

    agent = agent_of(named("a", refused), named("b", "from b"), on=["auth"])
    assert str(await agent.invoke_async("Hello.")) == "from b\n"


async def test_an_error_of_a_hook_is_no_failure_of_the_model(named):
    class Broken:
        name = "broken"
        order = 95

        @hookimpl
        async def around_model_call(self, request, call_next):
            await call_next(request)
            raise ConnectionError("the hook's own")

    second = named("b", "from b")
    agent = agent_of(named("a", "from a"), second, plugins=[Broken()])
    with pytest.raises(ConnectionError, match="the hook's own"):
        await agent.invoke_async("Hello.")

    assert second.calls == 0


async def test_an_answer_of_a_hook_is_counted_for_nobody(named):
    class Cache:
        name = "cache"
        order = 95

        @hookimpl
        async def around_model_call(self, request, call_next):
            return ModelOutcome.saying("cached")

    result = await agent_of(named("a"), plugins=[Cache()]).invoke_async("Hello.")
    assert result.state["fallback"] == {"model": None, "answers": {}, "switches": []}


async def test_what_a_hook_answers_after_a_model_has_is_not_counted(named):
    class Cache:
        name = "cache"
        order = 95

        @hookimpl
        async def around_model_call(self, request, call_next):
            return ModelOutcome.saying("cached") if len(request.messages) > 1 else await call_next(request)

    result = await agent_of(named("a", use("echo")), plugins=[Cache()]).invoke_async("Hello.")
    assert str(result) == "cached\n"
    assert result.state["fallback"]["answers"] == {"a": 1}


async def test_who_wraps_model_calls_sees_an_attempt_of_each_model_and_no_error(named):
    seen = []

    class Watch:
        name = "watch"

        @hookimpl
        async def around_model_call(self, request, call_next):
            seen.append("call")
            outcome = await call_next(request)
            seen.append(type(outcome).__name__)
            return outcome

    await agent_of(named("a", slow()), named("b", "from b"), plugins=[Watch()]).invoke_async("Hello.")
    assert seen == ["call", "Retry", "call", "ModelOutcome"]


async def test_after_an_overflow_only_a_larger_window_is_tried(named):
    first = named("a", ContextWindowOverflowException("too long"), context_window=100)
    agent = agent_of(first, named("b", "from b", context_window=50), named("c", "from c", context_window=200))
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from c\n"
    assert result.state["fallback"]["switches"][0]["failure"] == "overflow"


async def test_an_overflow_without_a_larger_window_is_told_with_the_reason(named):
    first = named("a", ContextWindowOverflowException("too long"), context_window=100)
    with pytest.raises(ContextWindowOverflowException, match="too long") as caught:
        await agent_of(first, named("b", "from b")).invoke_async("Hello.")

    assert "larger window" in caught.value.__notes__[0]


async def test_the_window_is_that_of_the_model_at_work(named):
    seen = []

    class Watch:
        name = "watch"

        @hookimpl
        async def manage_context(self, request, reason, agent):
            if reason == "before_model":
                seen.append(request.window)

    first = named("a", slow(), context_window=100)
    second = named("b", use("echo"), "from b", context_window=50)
    await agent_of(first, second, plugins=[Watch()]).invoke_async("Hello.")
    assert seen == [100, 50]


# -- bounds ------------------------------------------------------------------------------------------------------


async def test_switches_of_a_run_are_bounded_over_its_turns(named):
    models = named("a", slow()), named("b", use("echo"), slow("b is slow")), named("c", "from c")
    with pytest.raises(ModelThrottledException, match="b is slow") as caught:
        await agent_of(*models, max_switches=1, plugins=["-retry"]).invoke_async("Hello.")

    assert "max_switches=1" in caught.value.__notes__[0]
    assert models[2].calls == 0


async def test_when_all_have_failed_the_retry_strategy_waits_and_the_first_is_asked_again(named, waits):
    first, second = named("a", slow(), "from a"), named("b", slow())
    agent = agent_of(first, second, plugins=[("retry", {"jitter": 0})])
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from a\n"
    assert waits == [8.0]  # of the second attempt, because a switch is one
    assert result.metrics.model_calls == 3


async def test_without_a_retry_strategy_the_last_error_is_raised(named):
    with pytest.raises(ModelThrottledException, match="b is slow") as caught:
        await agent_of(named("a", slow()), named("b", slow("b is slow")), plugins=["-retry"]).invoke_async("Hello.")

    assert "b was the last model" in caught.value.__notes__[0]


async def test_models_that_never_answer_come_to_an_end(waits):
    def dead(request):
        raise ModelThrottledException("slow")

    first, second = ScriptedModel(dead), ScriptedModel(dead)
    agent = agent_of(first, second, plugins=[("retry", {"max_attempts": 6})])
    with pytest.raises(ModelThrottledException):
        await agent.invoke_async("Hello.")

    assert first.calls + second.calls <= 8


async def test_cancelling_ends_the_run_at_the_second_model(named):
    second = named("b", turn("one", stall=60))
    agent = agent_of(named("a", slow()), second, named("c", "from c"))
    task = asyncio.create_task(agent.invoke_async("Hello."))
    await second.wait_stalled()
    agent.cancel()
    result = await task
    assert result.stop_reason == "cancelled"
    assert result.state["fallback"]["model"] is None
    assert (second.active, second.aborted) == (0, 1)


async def test_cancelling_while_a_model_fails_asks_no_other(named):
    agent = None

    def fail(request):
        agent.cancel()
        raise ModelThrottledException("slow")

    second = named("b", "from b")
    agent = agent_of(ScriptedModel(fail), second)
    result = await agent.invoke_async("Hello.")
    assert result.stop_reason == "cancelled"
    assert second.calls == 0


async def test_tokens_are_priced_by_the_model_that_answered(named):
    prices = {"a": {"input": 0, "output": 1_000_000}, "b": {"input": 0, "output": 10_000_000}}
    first = named("a", turn(use("echo"), usage=(0, 1)), slow())
    second = named("b", turn(use("echo"), usage=(0, 1)), turn("end", usage=(0, 1)))
    agent = agent_of(first, second, plugins=[("limits", {"prices": prices})])
    result = await agent.invoke_async("Hello.", limits={"cost": 11})
    assert result.stop_reason == "limit_cost"
    assert result.state["limits"]["spent"]["cost"] == 11
    assert result.state["fallback"]["model"] == "b"


# -- state -------------------------------------------------------------------------------------------------------


async def test_one_model_serves_agents_that_run_at_once():
    def busy(request):
        if "fail" in request.messages[0]["content"][0]["text"]:
            raise ModelThrottledException("slow")

        return "from a"

    first, second = ScriptedModel(busy), ScriptedModel(lambda request: "from b")
    first.model_id, second.model_id = "a", "b"
    model = FallbackModel([first, second])
    agents = [Agent(model=model, plugins=["fallback"], callback_handler=None) for _ in range(6)]
    prompts = ["please fail" if n % 2 else "please" for n in range(6)]
    results = await asyncio.gather(*(a.invoke_async(p) for a, p in zip(agents, prompts, strict=True)))
    assert [str(result) for result in results] == ["from a\n", "from b\n"] * 3
    assert [len(result.state["fallback"]["switches"]) for result in results] == [0, 1] * 3


async def test_an_agent_within_a_tool_has_a_run_of_its_own(named):
    first = named("a", slow(), "inner from a", "never")
    second = named("b", use("echo"), "from b")
    model = FallbackModel([first, second])

    async def body():
        return str(await Agent(model=model, plugins=["fallback"], callback_handler=None).invoke_async("Inner."))

    agent = Agent(model=model, tools=[Echo(body)], plugins=["fallback"], callback_handler=None)
    result = await agent.invoke_async("Hello.")
    assert result.state["fallback"]["answers"] == {"b": 2}
    assert agent.messages[2]["content"][0]["toolResult"]["content"] == [{"text": "inner from a\n"}]


async def test_an_agent_within_a_tool_that_has_no_plugin_leaves_the_run_alone(named):
    first = named("a", slow(), slow(), "never")
    second = named("b", use("echo"), "inner from b", "from b")
    model = FallbackModel([first, second])

    async def body():
        return str(await Agent(model=model, plugins=["-fallback"], callback_handler=None).invoke_async("Inner."))

    agent = Agent(model=model, tools=[Echo(body)], plugins=["fallback"], callback_handler=None)
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from b\n"
    assert len(result.state["fallback"]["switches"]) == 1


async def test_the_failure_of_an_agent_within_a_tool_is_none_of_the_models(named, waits):
    async def body():
        inner = Agent(model=named("x", turn("half", cut=True), "inner"), plugins=["fallback"], callback_handler=None)
        return str(await inner.invoke_async("Inner."))

    result = await agent_of(named("a", use("echo"), "from a"), named("b"), body=body).invoke_async("Hello.")
    assert str(result) == "from a\n"
    assert result.state["fallback"]["switches"] == []


async def test_a_plugin_that_comes_late_to_an_agent_within_a_tool_leaves_the_run_alone(named):
    first = named("a", use("echo"), use("echo"), slow(), "from a")
    model = FallbackModel([first, named("b", "inner from b")])
    inner = Agent(model=model, plugins=["-fallback"], callback_handler=None)

    async def add():
        inner.add_plugin(FallbackPlugin())
        return "ok"

    async def body():
        return str(await inner.invoke_async("Inner."))

    inner.tool_registry.add(Echo(add))
    outer = Agent(model=model, tools=[Echo(body)], plugins=["fallback"], callback_handler=None)
    result = await outer.invoke_async("Hello.")
    assert str(result) == "from a\n"
    assert result.state["fallback"] == {"model": "a", "answers": {"a": 2}, "switches": []}


async def test_a_model_that_takes_the_place_during_a_run_has_nothing_to_fall_back_on(named, waits):
    other = named("other", turn("half", cut=True), "from other")

    async def body():
        agent.model = other
        return "ok"

    agent = agent_of(named("a", use("echo")), named("b"), body=body)
    result = await agent.invoke_async("Hello.")
    assert str(result) == "from other\n"
    assert result.state["fallback"]["switches"] == []


async def test_an_agent_that_fell_back_is_freed_at_once(named):
    def busy(request):
        raise ModelThrottledException("slow")

    agent = agent_of(ScriptedModel(busy), named("b", "from b"))
    await agent.invoke_async("Hello.")
    gone = weakref.ref(agent)
    gc.disable()
    try:
        del agent
        assert gone() is None
    finally:
        gc.enable()


def test_a_list_of_models_within_another_is_tried_as_one(named):
    second = named("b", slow())
    agent = agent_of(FallbackModel([named("a", slow()), second]), named("c", "from c"))
    assert str(agent("Hello.")) == "from c\n"
    assert second.calls == 1


# -- the options -------------------------------------------------------------------------------------------------


async def test_the_options_put_models_behind_the_agents_own(named, waits):
    own = named("own", slow(), "from own")
    agent = Agent(model=own, plugins=[("fallback", {"models": [named("b", "from b")]})], callback_handler=None)
    assert (await agent.invoke_async("Hello.")).state["fallback"]["model"] == "b"
    assert (await agent.invoke_async("Again.")).state["fallback"]["model"] == "own"


async def test_model_strings_are_looked_up_when_their_turn_comes(named, ropewalk_env):
    agent = Agent(model=named("own", "from own", slow()), plugins=[("fallback", {"models": ["testing:echo"]})])
    assert str(await agent.invoke_async("Hello.")) == "from own\n"
    result = await agent.invoke_async("Say this.")
    assert "Say this." in str(result)
    assert result.state["fallback"]["switches"][0]["from"] == "own"


async def test_a_string_that_nobody_knows_is_told_when_its_turn_comes(named, waits):
    agent = agent_of(named("a", "from a", slow()), "testing:nobody", on=["throttle"])
    assert str(await agent.invoke_async("Hello.")) == "from a\n"
    with pytest.raises((UnknownModelError, MissingPluginError), match="nobody"):
        await agent.invoke_async("Again.")


async def test_a_string_that_nobody_knows_is_passed_over_when_that_is_asked_for(named):
    agent = agent_of("testing:nobody", named("b", "from b"), on=["not_found"])
    assert str(await agent.invoke_async("Hello.")) == "from b\n"


async def test_a_model_given_later_is_first_from_then_on(named, waits):
    agent = Agent(
        model=named("own", "from own"),
        plugins=[("fallback", {"models": [named("b", "from b")]})],
        callback_handler=None,
    )
    await agent.invoke_async("Hello.")
    agent.model = named("other", slow())
    result = await agent.invoke_async("Again.")
    assert result.state["fallback"]["switches"][0]["from"] == "other"


async def test_an_agent_without_models_to_fall_back_on_is_left_alone(named):
    result = await Agent(model=named("a", "from a"), plugins=["fallback"], callback_handler=None).invoke_async("Hello.")
    assert "fallback" not in result.state


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"models": [7]}, "models.*pass a model string"),
        ({"models": [None]}, "models.*no None"),
        ({"models": ["testing:echo"], "on": ["slow"]}, "on.*no kind of failure"),
        ({"max_switches": -1}, "max_switches"),
        ({"max_switches": "many"}, "max_switches"),
        ({"modles": []}, "did you mean"),
    ],
)
def test_wrong_options_are_refused_by_name(named, options, match):
    with pytest.raises(PluginError, match=match):
        Agent(model=named("a"), plugins=[("fallback", options)])


def test_the_plugin_can_be_made_without_options():
    assert FallbackPlugin().name == "fallback"


# -- runs that pause ---------------------------------------------------------------------------------------------


class Asks:
    """Asks before the tools of each message."""

    name = "asks"

    @hookimpl
    async def around_tools(self, batch, call_next):
        current_run().interrupt("go on?")
        return await call_next(batch)


def answers(result):
    return [{"interruptResponse": {"interruptId": each.id, "response": True}} for each in result.interrupts]


async def test_a_run_that_goes_on_after_a_pause_stays_with_the_model_that_answers(named):
    first = named("a", slow(), "never")
    agent = agent_of(first, named("b", use("echo", {}), use("echo", {}), "done"), max_switches=1, plugins=[Asks()])
    result = await agent.invoke_async("Hello.")
    while result.interrupts:
        result = await agent.invoke_async(answers(result))

    assert str(result) == "done\n"
    assert first.calls == 1
    assert result.state["fallback"]["answers"] == {"b": 3}
    assert [switch["to"] for switch in result.state["fallback"]["switches"]] == ["b"]


async def test_a_pause_gives_a_run_no_more_switches_than_it_has(named, waits):
    last, failing = named("c", "never"), named("b", use("echo", {}), *[slow()] * 6)
    agent = agent_of(named("a", slow()), failing, last, max_switches=1, plugins=[Asks()])
    result = await agent.invoke_async("Hello.")
    with pytest.raises(ModelThrottledException) as caught:
        await agent.invoke_async(answers(result))

    assert "fallback: b failed, and max_switches=1 is reached" in caught.value.__notes__
    assert last.calls == 0


async def test_a_paused_run_goes_on_with_the_first_choice_when_that_was_back(named, waits):
    first = named("a", slow(), use("echo", {}), "done")
    last = named("b", slow())
    agent = agent_of(first, last, plugins=[Asks()])
    result = await agent.invoke_async("Hello.")
    result = await agent.invoke_async(answers(result))
    assert (str(result), first.calls, last.calls) == ("done\n", 3, 1)
    assert result.state["fallback"]["answers"] == {"a": 2}
