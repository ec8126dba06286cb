"""Errors of hooks reach the caller, and leave a valid history and a free agent."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, collect, make_plugin, parallel, problems, results_of, texts, use

from ropewalk import (
    Agent,
    AgentClosedError,
    ConcurrencyException,
    Denied,
    InvalidPromptError,
    MaxTokensReachedException,
    ModelError,
    ModelOutcome,
    ModelThrottledException,
    PluginError,
    Retry,
    Stop,
    ToolsOutcome,
    hookimpl,
)


class HookError(Exception):
    pass


class Raising:
    """Raises at one hook, before or after the rest of its chain."""

    name = "raising"

    def __init__(self, at, error):
        self.at = at
        self.error = error
        self.times = 0

    def reach(self, point):
        if point == self.at:
            self.at = None
            self.times += 1
            raise self.error

    @hookimpl
    async def init_agent(self):
        self.reach("init_agent")

    @hookimpl
    def check_call(self):
        self.reach("check_call")

    @hookimpl
    async def around_invocation(self, invocation, call_next):
        self.reach("around_invocation before")
        result = await call_next(invocation)
        self.reach("around_invocation after")
        return result

    @hookimpl
    async def around_model_call(self, request, call_next):
        self.reach("around_model_call before")
        outcome = await call_next(request)
        self.reach("around_model_call after")
        return outcome

    @hookimpl
    async def around_tools(self, batch, call_next):
        self.reach("around_tools before")
        outcome = await call_next(batch)
        self.reach("around_tools after")
        return outcome

    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.reach("around_tool_call before")
        result = await call_next(call)
        self.reach("around_tool_call after")
        return result

    @hookimpl
    async def execute_tools(self, batch):
        self.reach("execute_tools")

    @hookimpl
    async def decide_stop(self, cycle):
        self.reach(f"decide_stop {cycle.index}")

    @hookimpl
    async def decide_continue(self, message):
        self.reach("decide_continue")

    @hookimpl
    async def manage_context(self, reason):
        self.reach(f"manage_context {reason}")

    @hookimpl
    async def on_event(self, event):
        self.reach(f"on_event {type(event).__name__}")

    @hookimpl
    def on_delta(self, event):
        self.reach(f"on_delta {type(event).__name__}")

    @hookimpl
    async def decide_retry(self, failure):
        return 0.0

    @hookimpl
    async def write_records(self, records):
        for record in records:
            self.reach(f"write_records {record.kind}")


POINTS = [
    "init_agent",
    "check_call",
    "around_invocation before",
    "around_invocation after",
    "around_model_call before",
    "around_model_call after",
    "around_tools before",
    "around_tools after",
    "around_tool_call before",
    "around_tool_call after",
    "execute_tools",
    "decide_stop 0",
    "decide_stop 1",
    "decide_continue",
    "manage_context before_model",
    "manage_context after_tools",
    "manage_context after_invocation",
    "on_event RunStarted",
    "on_event CycleStarted",
    "on_event MessageAdded",
    "on_event ToolsStarting",
    "on_event RunEnded",
    "on_delta RawDelta",
    "on_delta TextDelta",
    "on_delta ToolInputDelta",
    "on_delta ToolStreamed",
    "write_records run_started",
    "write_records message_appended",
    "write_records model_started",
    "write_records model_ended",
    "write_records tool_started",
    "write_records tool_ended",
    "write_records run_ended",
]


def talkative(call):
    call.emit("on my way")
    return "ok"


async def talkative_async(call):
    call.emit("on my way")
    await asyncio.sleep(0)
    return "ok"


CASES = [
    (point, error, body)
    for point in POINTS
    for error in (HookError("hook"), KeyboardInterrupt(), asyncio.CancelledError())
    for body in (talkative_async, talkative)
    # one body is enough for the others; what is raised within a stream or a tool is the model's or the tool's
    if isinstance(error, Exception) or (body is talkative_async and not point.startswith("on_delta"))
]


@pytest.mark.parametrize("executor", [False, True], ids=["in order", "at once"])
@pytest.mark.parametrize(("point", "error", "body"), CASES, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_a_hook_that_raises_at(point, error, executor, body, ask):
    model = FakeModel([use("t", tool_use_id="A"), use("t", tool_use_id="B")], "done", "next", "next")
    raising = Raising(point, error)
    plugins = [raising, parallel()] if executor else [raising]
    agent = Agent(model=model, tools=[FakeTool("t", body)], plugins=plugins)

    with pytest.raises(type(error)) as caught:
        ask(agent, "go")

    if isinstance(error, Exception):
        assert caught.value is error

    assert raising.times == 1
    assert problems(agent.messages) == []
    assert agent.messages == [] or agent.messages[-1]["role"] == "assistant" or "toolResult" in str(agent.messages[-1])
    assert ask(agent, "again").stop_reason == "end_turn"
    assert problems(agent.messages) == []


@pytest.mark.parametrize("point", ["on_delta TextDelta", "around_model_call after", "on_event MessageAdded"])
def test_an_error_of_a_hook_is_never_taken_for_the_models_and_retried(point):
    model = FakeModel("one", "two")
    agent = Agent(model=model, plugins=[Raising(point, ModelThrottledException("not the model's"))])

    with pytest.raises(ModelThrottledException):
        agent("go")

    assert model.calls == 1


def test_an_observer_that_raises_stops_nobody(caplog):
    async def on_event(self, event):
        raise HookError("observer")

    agent = Agent(model=FakeModel("fine"), plugins=[make_plugin("watcher", tier="observer", on_event=on_event)])

    assert str(agent("go")) == "fine\n"
    assert "watcher" in caplog.text


def test_a_follower_that_raises_at_everything_hides_no_error_of_the_model(ask):
    async def on_event(self, event):
        if type(event).__name__ == "RunFailed":
            raise HookError("follower")

    agent = Agent(model=FakeModel(ModelError("the first")), plugins=[make_plugin(on_event=on_event)])

    with pytest.raises(ModelError, match="the first"):
        ask(agent, "go")


# -- chains ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["around_model_call", "around_tools", "around_tool_call", "around_invocation"])
@pytest.mark.parametrize("value", [None, 42], ids=repr)
def test_a_chain_that_returns_what_it_must_not_is_named(hook, value, ask):
    class Odd:
        name = "odd"

        @hookimpl
        async def around_model_call(self, request, call_next):
            return value if hook == "around_model_call" else await call_next(request)

        @hookimpl
        async def around_tools(self, batch, call_next):
            return value if hook == "around_tools" else await call_next(batch)

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return value if hook == "around_tool_call" else await call_next(call)

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            return value if hook == "around_invocation" else await call_next(invocation)

    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[FakeTool("t")], plugins=[Odd()])
    if hook == "around_tool_call" and value is not None:
        ask(agent, "go")
        assert "did not return a result but int" in results_of(agent.messages)["T"]
        return

    with pytest.raises(PluginError, match=hook):
        ask(agent, "go")

    assert problems(agent.messages) == []


def test_a_second_call_next_in_one_attempt_is_refused():
    async def around_model_call(self, request, call_next):
        await call_next(request)
        return await call_next(request)

    agent = Agent(model=FakeModel("a", "b"), plugins=[make_plugin(around_model_call=around_model_call)])

    with pytest.raises(ModelError, match="twice"):
        agent("go")


def test_a_denied_call_stores_nothing_and_says_the_text(ask):
    async def around_invocation(self, invocation, call_next):
        return Denied("not today")

    model = FakeModel("never")
    agent = Agent(model=model, plugins=[make_plugin(around_invocation=around_invocation)])
    result = ask(agent, "go")

    assert (result.stop_reason, str(result), agent.messages, model.calls) == ("end_turn", "not today\n", [], 0)


def test_a_second_pass_that_fails_takes_back_its_own_input_only(ask):
    async def around_invocation(self, invocation, call_next):
        await call_next(invocation)
        return await call_next(invocation.with_messages([{"role": "user", "content": [{"text": "second"}]}]))

    agent = Agent(model=FakeModel("one", ModelError("no")), plugins=[make_plugin(around_invocation=around_invocation)])

    with pytest.raises(ModelError):
        ask(agent, "first")

    assert [texts(m) for m in agent.messages] == [["first"], ["one"]]


def test_retry_drops_the_answer_counts_its_usage_and_keeps_feedback():
    seen = []

    async def around_model_call(self, request, call_next):
        outcome = await call_next(request)
        seen.append((texts(request.messages[-1]), texts(outcome.message)))
        return Retry("again", feedback=({"text": "better"},)) if len(seen) == 1 else outcome

    agent = Agent(model=FakeModel("bad", "good"), plugins=[make_plugin(around_model_call=around_model_call)])
    events = asyncio.run(collect(agent, "go"))

    assert seen == [(["go"], ["bad"]), (["go", "better"], ["good"])]
    assert [texts(m) for m in agent.messages] == [["go", "better"], ["good"]]
    assert events[-1]["result"].metrics.accumulated_usage["totalTokens"] == 10
    assert events[-1]["result"].metrics.cycle_count == 1
    assert {"attempt_discarded": {"attempt": 1, "reason": "again"}} in events


def test_the_model_can_be_answered_for():
    async def around_model_call(self, request, call_next):
        return ModelOutcome.saying("from the cache")

    model = FakeModel()
    agent = Agent(model=model, plugins=[make_plugin(around_model_call=around_model_call)])

    assert str(agent("go")) == "from the cache\n"
    assert model.calls == 0


def test_decide_retry_is_told_what_happened_and_waits_in_the_seam():
    from ropewalk.kits.aio.seam import Seam, use_seam

    class Still(Seam):
        slept = []  # noqa: RUF012 - read below

        async def sleep(self, seconds):
            self.slept.append(seconds)

    failures = []

    async def decide_retry(self, failure):
        failures.append((str(failure.error), failure.attempt, failure.waited))
        return float(failure.attempt * 10) if failure.attempt < 3 else None

    model = FakeModel(*(ModelThrottledException(f"e{n}") for n in range(3)))
    agent = Agent(model=model, plugins=[make_plugin(decide_retry=decide_retry)])
    with use_seam(Still()), pytest.raises(ModelThrottledException, match="e2"):
        agent("go")

    assert failures == [("e0", 1, 0.0), ("e1", 2, 10.0), ("e2", 3, 30.0)]
    assert Still.slept == [10.0, 20.0]
    assert agent.messages == []


def test_tools_can_end_the_turn():
    async def around_tools(self, batch, call_next):
        outcome = await call_next(batch)
        return ToolsOutcome(outcome.results, end_turn="that is all")

    model = FakeModel(use("t"))
    agent = Agent(model=model, tools=[FakeTool("t")], plugins=[make_plugin(around_tools=around_tools)])
    result = agent("go")

    assert (result.stop_reason, str(result)) == ("end_turn", "that is all\n")
    assert problems(agent.messages) == []
    assert agent.messages[-1] == result.message


def test_a_run_can_be_stopped_at_the_top_of_a_cycle_and_made_to_go_on():
    asked = []

    async def decide_stop(self, cycle):
        return Stop("limit_turns", {"used": cycle.index}) if cycle.index == 2 else None

    async def decide_continue(self, message):
        asked.append(texts(message))
        return [{"text": "go on"}]

    plugin = make_plugin(decide_stop=decide_stop, decide_continue=decide_continue)
    agent = Agent(model=FakeModel("one", "two"), plugins=[plugin])
    result = agent("go")

    assert (result.stop_reason, result.state, str(result)) == ("limit_turns", {"used": 2}, "two\n")
    assert asked == [["one"], ["two"]]
    assert [texts(m) for m in agent.messages] == [["go"], ["one"], ["go on"], ["two"], ["go on"]]


def test_a_cancel_travels_through_the_chain_as_a_value(ask):
    seen = []

    async def decide_stop(self, agent):
        agent.cancel()
        await asyncio.Event().wait()

    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        seen.append(result.stop_reason)
        return result

    plugin = make_plugin(decide_stop=decide_stop, around_invocation=around_invocation)
    assert ask(Agent(model=FakeModel(), plugins=[plugin]), "go").stop_reason == "cancelled"
    assert seen == ["cancelled"]


# -- admission ---------------------------------------------------------------------------------------------------


def test_an_answer_cut_at_the_limit_raises_and_is_kept(ask):
    cut = [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "so"}}}]
    agent = Agent(model=FakeModel([*cut, {"messageStop": {"stopReason": "max_tokens"}}], "next"))

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert [texts(m) for m in agent.messages] == [["go"], ["so"]]


def test_a_busy_agent_refuses_and_is_free_afterwards():
    async def run():
        async def slow():
            await release.wait()
            yield {"messageStop": {"stopReason": "end_turn"}}

        release = asyncio.Event()
        agent = Agent(model=FakeModel(slow, "later"))
        first = asyncio.create_task(agent.invoke_async("a"))
        await asyncio.sleep(0)
        for call in (agent.invoke_async("b"), collect(agent, "b")):
            with pytest.raises(ConcurrencyException, match="busy"):
                await call

        release.set()
        await first
        assert str(await agent.invoke_async("c")) == "later\n"

    asyncio.run(run())


def test_nothing_to_go_on_with_is_refused_and_a_closed_agent_too(ask):
    agent = Agent(model=FakeModel("x"))
    with pytest.raises(InvalidPromptError):
        ask(agent)

    assert str(ask(agent, "hi")) == "x\n"
    agent.close()
    agent.close()
    with pytest.raises(AgentClosedError):
        ask(agent, "hi")


def test_plugins_begin_once_again_after_a_failure_and_end_once():
    calls = []

    async def init_agent(self, agent):
        calls.append("init")
        if len(calls) == 1:
            raise HookError("not yet")

    async def on_close(self, agent):
        calls.append("close")

    agent = Agent(model=FakeModel("a", "b"), plugins=[make_plugin(init_agent=init_agent, on_close=on_close)])
    with pytest.raises(HookError):
        agent("x")

    agent("x")
    agent("x")
    with agent:
        pass

    agent.close()
    assert calls == ["init", "init", "close"]


def test_a_plugin_that_is_added_during_a_run_takes_part_from_the_next_cycle():
    cycles = []

    def late():
        async def decide_stop(self, cycle):
            cycles.append(cycle.index)

        async def init_agent(self, agent):
            cycles.append("init")

        return make_plugin("late", decide_stop=decide_stop, init_agent=init_agent)

    tool = FakeTool("t", lambda call: call.agent.add_plugin(late()))
    agent = Agent(model=FakeModel(use("t"), use("u"), "done", "again"), tools=[tool, FakeTool("u")])
    agent("go")
    first, cycles[:] = list(cycles), []
    agent("more")

    assert "init" not in first
    assert first
    assert cycles == ["init", 0]
