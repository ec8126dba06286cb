"""A run is stopped at every place where it can wait, from inside and from outside."""

from __future__ import annotations

import asyncio
import threading

import pytest
from kernel_fakes import (
    FakeModel,
    FakeTool,
    collect,
    events_of,
    make_plugin,
    parallel,
    problems,
    results_of,
    texts,
    use,
)

from ropewalk import Agent, ModelThrottledException
from ropewalk.kits.aio.cancellation import Cancellation


async def soon(awaitable):
    """Its result; a test that hangs fails instead."""
    return await asyncio.wait_for(awaitable, 20)


# -- a run that waits at every place, and stays at one -----------------------------------------------------------

POINTS = (
    "init_agent",
    "on_event RunStarted",
    "around_invocation before",
    "decide_stop 0",
    "on_event CycleStarted",
    "manage_context before_model",
    "around_model_call before",
    "model at its start",
    "decide_retry",
    "on_event AttemptDiscarded",
    "model in the middle",
    "model at its end",
    "around_model_call after",
    "on_event MessageAdded assistant",
    "on_event ToolsStarting",
    "around_tools before",
    "execute_tools",
    "around_tool_call before",
    "tool",
    "around_tool_call after",
    "around_tools after",
    "on_event MessageAdded user",
    "manage_context after_tools",
    "decide_stop 1",
    "decide_continue",
    "around_invocation after",
    "manage_context after_invocation",
    "on_event RunEnded",
)
AT_THE_END = POINTS[-3:]
NEVER_STARTED = POINTS[POINTS.index("on_event MessageAdded assistant") : POINTS.index("tool")]


class Gate:
    """Lets everybody pass but at one point, where they stay for good."""

    def __init__(self, stay_at=None):
        self.stay_at = stay_at
        self.reached = asyncio.Event()
        self.visited = []

    async def __call__(self, point):
        self.visited.append(point)
        if point == self.stay_at:
            self.stay_at = None
            self.reached.set()
            await asyncio.Event().wait()

        await asyncio.sleep(0)


def gated_agent(gate, *, executor=None):  # noqa: C901 - one function per hook
    async def failing():
        await gate("model at its start")
        raise ModelThrottledException("slow down")
        yield

    async def asking():
        for event in events_of(["let me see", use("work"), use("work")], 1)[:-2]:
            yield event
            await gate("model in the middle")

        for event in events_of([use("work")], 1)[-2:]:
            yield event

        await gate("model at its end")

    async def work(call):
        await gate("tool")
        return "worked"

    async def on_event(self, event):
        name = type(event).__name__
        await gate(f"on_event {name} {event.message['role']}" if name == "MessageAdded" else f"on_event {name}")

    def around(hook):
        async def link(self, subject, call_next):
            await gate(f"{hook} before")
            outcome = await call_next(subject)
            await gate(f"{hook} after")
            return outcome

        return link

    async def around_invocation(self, invocation, call_next):
        return await around("around_invocation")(self, invocation, call_next)

    async def around_model_call(self, request, call_next):
        return await around("around_model_call")(self, request, call_next)

    async def around_tools(self, batch, call_next):
        return await around("around_tools")(self, batch, call_next)

    async def around_tool_call(self, call, call_next):
        return await around("around_tool_call")(self, call, call_next)

    async def init_agent(self, agent):
        await gate("init_agent")

    async def decide_stop(self, cycle):
        await gate(f"decide_stop {cycle.index}")

    async def decide_continue(self, message):
        await gate("decide_continue")

    async def manage_context(self, reason):
        await gate(f"manage_context {reason}")

    async def decide_retry(self, failure):
        await gate("decide_retry")
        return 0.0

    async def execute_tools(self, batch, run_tool):
        await gate("execute_tools")

    plugin = make_plugin(
        "gated",
        on_event=on_event,
        around_invocation=around_invocation,
        around_model_call=around_model_call,
        around_tools=around_tools,
        around_tool_call=around_tool_call,
        init_agent=init_agent,
        decide_stop=decide_stop,
        decide_continue=decide_continue,
        manage_context=manage_context,
        decide_retry=decide_retry,
        execute_tools=execute_tools,
    )
    plugins = [plugin, executor] if executor else [plugin]
    model = FakeModel(failing, asking, "done", "again done", "again done")
    return Agent(model=model, tools=[FakeTool("work", work)], plugins=plugins)


async def consumed(agent, prompt):
    return (await collect(agent, prompt))[-1]["result"]


CALLS = {"awaited": lambda agent, prompt: agent.invoke_async(prompt), "streamed": consumed}
EXECUTORS = {"in order": lambda: None, "at once": parallel}


@pytest.fixture(params=CALLS.values(), ids=CALLS)
def call(request):
    return request.param


@pytest.fixture(params=EXECUTORS.values(), ids=EXECUTORS)
def executor(request):
    return request.param()


async def goes_on(agent):
    """The agent is free, its history valid, and its next run as any other."""
    assert problems(agent.messages) == []
    assert asyncio.current_task().cancelling() == 0
    model = FakeModel("fresh")
    agent.model = model
    result = await soon(agent.invoke_async("again"))
    assert (result.stop_reason, str(result)) == ("end_turn", "fresh\n")
    assert problems(model.requests[0]) == []
    assert problems(agent.messages) == []


async def test_the_points_are_all_that_a_run_passes(call):
    gate = Gate()
    agent = gated_agent(gate)

    result = await call(agent, "go")

    assert result.stop_reason == "end_turn"
    assert list(dict.fromkeys(gate.visited)) == list(POINTS)


@pytest.mark.parametrize("point", POINTS)
async def test_cancel_ends_a_run_that_waits_at(point, call, executor, quiet_loop):
    gate = Gate(point)
    agent = gated_agent(gate, executor=executor)
    task = asyncio.create_task(call(agent, "go"))
    await soon(gate.reached.wait())

    agent.cancel()
    result = await soon(task)

    assert result.stop_reason == "cancelled" or point in AT_THE_END
    assert task.cancelling() == 0
    if point in NEVER_STARTED:
        said = set(results_of(agent.messages).values())
        assert "Tool execution cancelled" in said <= {"Tool execution cancelled", "worked"}

    await goes_on(agent)


@pytest.mark.parametrize("point", POINTS)
async def test_a_cancelled_task_raises_out_of_a_run_that_waits_at(point, call, executor, quiet_loop):
    gate = Gate(point)
    agent = gated_agent(gate, executor=executor)
    task = asyncio.create_task(call(agent, "go"))
    await soon(gate.reached.wait())

    task.cancel("from outside")
    with pytest.raises(asyncio.CancelledError):
        await soon(task)

    if point in NEVER_STARTED:
        said = set(results_of(agent.messages).values())
        assert "Tool execution cancelled" in said <= {"Tool execution cancelled", "worked"}

    await goes_on(agent)


@pytest.mark.parametrize("point", POINTS)
async def test_a_timeout_ends_a_run_that_waits_at(point, call, quiet_loop):
    gate = Gate(point)
    agent = gated_agent(gate)

    async def expire():
        await soon(gate.reached.wait())
        deadline.reschedule(0)

    expiry = asyncio.create_task(expire())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as deadline:
            await call(agent, "go")

    await expiry
    await goes_on(agent)


@pytest.mark.parametrize("point", POINTS)
async def test_a_cancel_from_inside_and_one_from_outside_at_once_raise(point, executor, quiet_loop):
    gate = Gate(point)
    agent = gated_agent(gate, executor=executor)
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(gate.reached.wait())

    agent.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)

    await goes_on(agent)


@pytest.mark.parametrize("point", POINTS)
async def test_a_run_that_was_cancelled_before_it_began_stops_wherever_it_would_wait(point, call, quiet_loop):
    gate = Gate(point)
    agent = gated_agent(gate)
    agent.cancel()

    result = await soon(call(agent, "go"))

    assert result.stop_reason == "cancelled"
    assert agent.messages == []
    gate.stay_at = None
    await goes_on(agent)


# -- what is kept and what is said -------------------------------------------------------------------------------


async def test_partial_text_and_usage_are_kept():
    gate = Gate("here")

    async def half():
        yield {"metadata": {"usage": {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10}}}
        yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "half an ans"}}}
        await gate("here")

    agent = Agent(model=FakeModel(half))
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(gate.reached.wait())
    agent.cancel()
    result = await soon(task)

    assert str(result) == "half an ans\n"
    assert result.metrics.accumulated_usage["totalTokens"] == 10
    assert [texts(m) for m in agent.messages] == [["go"], ["half an ans"]]


async def test_a_run_that_said_nothing_leaves_no_trace():
    gate = Gate("here")

    async def silent():
        await gate("here")
        yield {}

    agent = Agent(model=FakeModel(silent))
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(gate.reached.wait())
    agent.cancel()
    result = await soon(task)

    assert str(result) == "Cancelled by user\n"
    assert agent.messages == []


async def stopped_in(tools, stop, *, plugins=()):
    """An agent whose tools wait in turn, stopped once `first` waits."""
    model = FakeModel([use(name, tool_use_id=name) for name in tools], "done")
    agent = Agent(model=model, tools=[FakeTool(n, body) for n, body in tools.items()], plugins=list(plugins))
    task = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)

    stop(agent, task)
    await asyncio.wait([task])
    return agent, task


async def quick(call):
    return "done at once"


async def endless(call):
    await asyncio.Event().wait()


@pytest.mark.parametrize("outside", [False, True], ids=["cancel", "task.cancel"])
async def test_finished_running_and_waiting_calls_are_told_apart(outside):
    tools = {"finished": quick, "running": endless, "waiting": quick}

    agent, _ = await stopped_in(tools, lambda agent, task: task.cancel() if outside else agent.cancel())

    said = results_of(agent.messages)
    assert said["finished"] == "done at once"
    assert "may or may not have taken effect" in said["running"]
    assert "effect" not in said["waiting"]


@pytest.mark.parametrize("outside", [False, True], ids=["cancel", "task.cancel"])
async def test_calls_that_run_at_once_are_each_told_what_became_of_them(outside):
    tools = {"finished": quick, "one": endless, "two": endless}

    agent, _ = await stopped_in(
        tools, lambda agent, task: task.cancel() if outside else agent.cancel(), plugins=[parallel()]
    )

    said = results_of(agent.messages)
    assert said["finished"] == "done at once"
    assert all("may or may not have taken effect" in said[name] for name in ("one", "two"))


async def test_a_tool_that_answers_on_being_cancelled_is_believed():
    async def stubborn(call):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cleaned up"

    agent, task = await stopped_in({"tool": stubborn}, lambda agent, task: agent.cancel())

    assert task.result().stop_reason == "cancelled"
    assert results_of(agent.messages) == {"tool": "cleaned up"}


async def test_whoever_swallows_a_cancellation_leaves_the_callers_task_as_it_was():
    async def stubborn(call):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cleaned up"

    agent = Agent(model=FakeModel(use("tool"), "done"), tools=[FakeTool("tool", stubborn)])
    asyncio.get_running_loop().call_soon(agent.cancel)
    result = await soon(agent.invoke_async("go"))

    assert result.stop_reason == "cancelled"
    assert asyncio.current_task().cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()


@pytest.mark.parametrize("hook", ["around_model_call", "around_tool_call", "around_tools", "around_invocation"])
async def test_a_hook_that_swallows_a_cancellation_does_not_bring_the_run_back(hook):
    async def link(self, subject, call_next):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await call_next(subject)

    subject = {"model_call": "request", "tool_call": "call", "tools": "batch", "invocation": "invocation"}
    name = subject[hook.removeprefix("around_")]
    scope = {"link": link}
    exec(f"async def {hook}(self, {name}, call_next): return await link(self, {name}, call_next)", scope)
    tool = FakeTool("tool", quick)
    agent = Agent(model=FakeModel(use("tool"), "done"), tools=[tool], plugins=[make_plugin(**{hook: scope[hook]})])
    task = asyncio.create_task(agent.invoke_async("go"))
    for _ in range(20):
        await asyncio.sleep(0)

    agent.cancel()
    result = await soon(task)

    assert result.stop_reason == "cancelled"
    assert task.cancelling() == 0
    assert tool.calls == 0
    assert problems(agent.messages) == []


async def test_cancelling_again_changes_nothing():
    cleaned = []

    async def careful(call):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            cleaned.append(True)

    agent = Agent(model=FakeModel(use("tool"), "done"), tools=[FakeTool("tool", careful)])
    task = asyncio.create_task(agent.invoke_async("go"))
    for _ in range(10):
        await asyncio.sleep(0)

    for _ in range(4):
        agent.cancel()
        await asyncio.sleep(0)

    assert (await soon(task)).stop_reason == "cancelled"
    assert cleaned == [True]
    await goes_on(agent)


async def test_the_flag_is_cleared_after_a_run_that_it_did_not_reach():
    async def on_event(self, event, agent):
        if type(event).__name__ == "RunEnded":
            agent.cancel()

    agent = Agent(model=FakeModel("one", "two"), plugins=[make_plugin(on_event=on_event)])

    assert (await agent.invoke_async("a")).stop_reason == "end_turn"
    assert (await agent.invoke_async("b")).stop_reason == "end_turn"


async def test_a_second_call_that_is_refused_does_not_use_up_a_cancel():
    gate = Gate("here")

    async def waiting():
        await gate("here")
        yield {}

    agent = Agent(model=FakeModel(waiting))
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(gate.reached.wait())
    agent.cancel()
    with pytest.raises(Exception, match="busy"):
        await agent.invoke_async("too")

    assert (await soon(task)).stop_reason == "cancelled"


@pytest.mark.parametrize("during", ["retry wait", "retry for ever", "feedback for ever", "continue for ever"])
async def test_a_loop_of_hooks_ends_on_cancel(during):
    from ropewalk import Retry

    rounds = []

    async def decide_retry(self, failure, agent):
        return 3600.0

    async def around_model_call(self, request, call_next, agent):
        rounds.append(1)
        await call_next(request)
        if len(rounds) == 3:
            agent.cancel()

        assert len(rounds) < 50
        return Retry("again", feedback=({"text": "no"},) if during == "feedback for ever" else ())

    async def decide_continue(self, message, agent):
        rounds.append(1)
        if len(rounds) == 3:
            agent.cancel()

        return [{"text": "more"}]

    if during == "retry wait":
        agent = Agent(model=FakeModel(ModelThrottledException("no")), plugins=[make_plugin(decide_retry=decide_retry)])
    elif during == "continue for ever":
        agent = Agent(model=FakeModel(*["x"] * 9), plugins=[make_plugin(decide_continue=decide_continue)])
    else:
        agent = Agent(model=FakeModel(*["x"] * 9), plugins=[make_plugin(around_model_call=around_model_call)])

    task = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if during == "retry wait":
        agent.cancel()

    assert (await soon(task)).stop_reason == "cancelled"
    assert problems(agent.messages) == []


async def test_a_task_that_was_cancelled_before_can_still_run_an_agent_and_cancel_it():
    async def raises_by_itself(call):
        raise asyncio.CancelledError

    async def cancels(call):
        call.agent.cancel()
        await asyncio.Event().wait()

    results = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            model = FakeModel(use("own"), use("cancels"), "done")
            agent = Agent(model=model, tools=[FakeTool("own", raises_by_itself), FakeTool("cancels", cancels)])
            results.append(await agent.invoke_async("clean up"))
            results.append(results_of(agent.messages))

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert results[0].stop_reason == "cancelled"
    assert "CancelledError" in next(iter(results[1].values()))
    assert task.cancelled()


async def test_a_model_that_raises_cancelled_by_itself_is_a_failing_model():
    from ropewalk import ModelError

    agent = Agent(model=FakeModel(asyncio.CancelledError(), "fine"))

    with pytest.raises(ModelError, match="cancelled"):
        await soon(agent.invoke_async("go"))

    assert agent.messages == []
    assert str(await soon(agent.invoke_async("go"))) == "fine\n"


async def test_a_cancel_from_outside_is_not_lost_while_a_stream_is_closed():
    closing = asyncio.Event()

    async def slow_to_close():
        try:
            yield {"messageStart": {}}
            await asyncio.Event().wait()
        finally:
            closing.set()
            await asyncio.sleep(0.05)

    agent = Agent(model=FakeModel(slow_to_close))
    task = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    agent.cancel()
    await soon(closing.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)

    await goes_on(agent)


async def test_a_stream_that_is_slow_to_close_does_not_hold_a_cancelled_run():
    closed = []

    class NeverCloses:
        async def stream(self, request):
            try:
                agent.cancel()
                yield {"messageStart": {}}
            finally:
                try:
                    await asyncio.Event().wait()
                finally:
                    closed.append(True)

    agent = Agent(model=NeverCloses())

    assert (await soon(agent.invoke_async("go"))).stop_reason == "cancelled"
    assert closed == [True]


async def test_an_agent_inside_a_tool_passes_its_parents_cancel_on():
    gate = Gate("here")

    async def inner_waits():
        await gate("here")
        yield {}

    child = Agent(model=FakeModel(inner_waits, "child goes on"))

    async def ask_child(call):
        return str(await child.invoke_async("sub"))

    parent = Agent(model=FakeModel(use("child"), "done"), tools=[FakeTool("child", ask_child)])
    task = asyncio.create_task(parent.invoke_async("go"))
    await soon(gate.reached.wait())
    parent.cancel()

    assert (await soon(task)).stop_reason == "cancelled"
    assert child.messages == []
    assert str(await child.invoke_async("sub")) == "child goes on\n"
    await goes_on(parent)


@pytest.mark.parametrize("both", [False, True], ids=["child", "both"])
async def test_a_child_that_is_cancelled_alone_leaves_its_parent_running(both):
    gate = Gate("here")

    async def inner_waits():
        await gate("here")
        yield {}

    child = Agent(model=FakeModel(inner_waits))

    async def ask_child(call):
        return (await child.invoke_async("sub")).stop_reason

    parent = Agent(model=FakeModel(use("child", tool_use_id="T"), "done"), tools=[FakeTool("child", ask_child)])
    task = asyncio.create_task(parent.invoke_async("go"))
    await soon(gate.reached.wait())
    child.cancel()
    if both:
        parent.cancel()

    result = await soon(task)
    assert result.stop_reason == ("cancelled" if both else "end_turn")
    assert task.cancelling() == 0
    if not both:
        assert results_of(parent.messages)["T"] == "cancelled"

    await goes_on(parent)


async def test_cancel_from_another_thread_reaches_a_synchronous_tool_and_its_late_result_is_dropped():
    released, entered = threading.Event(), threading.Event()

    def stuck(call):
        entered.set()
        call.cancel_signal.wait(5)
        released.wait(5)
        return "late"

    agent = Agent(model=FakeModel(use("stuck", tool_use_id="T"), "done"), tools=[FakeTool("stuck", stuck)])
    canceller = threading.Thread(target=lambda: entered.wait(5) and agent.cancel())
    canceller.start()
    result = await soon(agent.invoke_async("go"))
    released.set()
    canceller.join()

    assert result.stop_reason == "cancelled"
    assert "may or may not" in results_of(agent.messages)["T"]
    await goes_on(agent)


async def test_writing_records_is_not_interrupted_and_the_cancel_is_obeyed_after_it():
    writes = []
    writing = asyncio.Event()

    async def write_records(self, records):
        kinds = [record.kind for record in records]
        if "tool_started" in kinds:
            writing.set()
            for _ in range(10):
                await asyncio.sleep(0)

        writes.append(kinds)

    tool = FakeTool("tool", endless)
    agent = Agent(model=FakeModel(use("tool")), tools=[tool], plugins=[make_plugin(write_records=write_records)])
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(writing.wait())
    agent.cancel()

    assert (await soon(task)).stop_reason == "cancelled"
    assert any("tool_started" in kinds for kinds in writes)
    assert writes[-1] == ["message_appended", "run_ended"]
    assert tool.calls == 0
    assert set(results_of(agent.messages).values()) == {"Tool execution cancelled"}


async def test_a_cancel_from_outside_while_records_are_written_is_not_lost_to_one_from_inside():
    """Also when hooks clean up, awaiting, while the caller's cancellation is on its way out."""

    async def write_records(self, records):
        for _ in range(2):
            await asyncio.sleep(0)

    async def cleaning_up(self, value, call_next):
        try:
            return await call_next(value)
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def around_invocation(self, invocation, call_next):
        return await cleaning_up(self, invocation, call_next)

    async def around_tool_call(self, call, call_next):
        return await cleaning_up(self, call, call_next)

    hooks = {
        "write_records": write_records,
        "around_invocation": around_invocation,
        "around_tool_call": around_tool_call,
    }
    tried = 0
    for steps in range(200):
        tool = FakeTool("t", quick)
        agent = Agent(
            model=FakeModel([use("t"), use("t")], "x"), tools=[tool], plugins=[make_plugin(**hooks), parallel()]
        )
        task = asyncio.create_task(agent.invoke_async("go"))
        for _ in range(steps):
            await asyncio.sleep(0)

        if task.done():
            break

        tried += 1
        task.cancel()
        agent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(task)

        assert problems(agent.messages) == []

    assert 20 < tried < 200


# -- the class by itself -----------------------------------------------------------------------------------------


async def test_only_parked_tasks_are_interrupted_and_only_they_claim():
    cancellation = Cancellation(asyncio.get_running_loop())
    said = []

    async def wait(name, park):
        task = asyncio.current_task()
        if park:
            assert cancellation.park(task)
            assert not cancellation.park(task)

        try:
            await asyncio.sleep(0.02)
            said.append(f"{name} slept")
        except asyncio.CancelledError:
            said.append(f"{name} interrupted, claim {cancellation.claim()}, again {cancellation.claim()}")

    tasks = [asyncio.create_task(wait("parked", True)), asyncio.create_task(wait("free", False))]
    await asyncio.sleep(0)
    cancellation.request()
    cancellation.request()
    await asyncio.gather(*tasks)

    assert said == ["parked interrupted, claim True, again False", "free slept"]
    assert cancellation.signal.is_set()
    assert all(task.cancelling() == 0 for task in tasks)


def test_a_request_after_the_loop_was_closed_is_harmless():
    async def make():
        return Cancellation(asyncio.get_running_loop())

    cancellation = asyncio.run(make())
    cancellation.request()

    assert cancellation.requested
    assert cancellation.signal.is_set()


def test_the_signal_is_set_for_whoever_asks_late():
    loop = asyncio.new_event_loop()
    cancellation = Cancellation(loop)
    early = cancellation.signal
    cancellation.request()
    loop.close()

    assert early.is_set()
    assert cancellation.signal is early


@pytest.mark.parametrize("way", ["aside", "sheltered"])
async def test_a_cancel_from_outside_that_came_while_interruptions_were_forbidden_is_not_claimed_afterwards(way):
    task = asyncio.current_task()
    cancellation = Cancellation(asyncio.get_running_loop())
    cancellation.park(task)

    async def cancelled_from_outside():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(1)

    if way == "aside":
        parked = cancellation.put_aside(task)
        await cancelled_from_outside()
        cancellation.take_back(task, parked=parked)
    else:
        with cancellation.sheltered():
            await cancelled_from_outside()

    cancellation.request()  # while the caller's cancellation is on its way out
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(1)

    assert not cancellation.claim()
    assert task.uncancel() == 0


async def test_without_a_task_the_current_one_is_meant_and_where_there_is_none_nothing_happens():
    cancellation = Cancellation(asyncio.get_running_loop())
    assert cancellation.park()
    assert cancellation.is_parked(asyncio.current_task())
    assert cancellation.put_aside()
    assert not cancellation.is_parked(asyncio.current_task())
    cancellation.take_back(parked=True)
    assert cancellation.is_parked(asyncio.current_task())
    cancellation.unpark()
    assert not cancellation.is_parked(asyncio.current_task())

    done = asyncio.Event()
    seen = []

    def outside_of_tasks():
        seen.extend([cancellation.park(), cancellation.put_aside(), cancellation.take_back(parked=False)])
        cancellation.unpark()
        with cancellation.sheltered():
            done.set()

    asyncio.get_running_loop().call_soon(outside_of_tasks)
    await asyncio.wait_for(done.wait(), 5)
    assert seen == [False, False, None]


# -- where the way out is seldom taken ---------------------------------------------------------------------------


async def test_a_cancel_while_a_hook_waits_before_the_model_call_is_a_result():
    async def around(self, request, call_next):
        if agent.model is model:
            agent.cancel()
            await asyncio.Event().wait()

        return await call_next(request)

    model = FakeModel("never")
    agent = Agent(model=model, plugins=[make_plugin(around_model_call=around)])
    result = await soon(agent.invoke_async("go"))

    assert (result.stop_reason, model.calls) == ("cancelled", 0)
    await goes_on(agent)


@pytest.mark.parametrize("end", ["cannot be closed", "fails", "is fine"])
async def test_however_a_stream_ends_that_is_not_read_to_its_end_the_run_is_cancelled(end):
    closed = []

    class Stream:
        def __aiter__(self):
            return self

        async def __anext__(self):
            agent.cancel()
            return {"messageStart": {"role": "assistant"}}

    class Closing(Stream):
        async def aclose(self):
            closed.append(True)
            if end == "fails":
                raise OSError("connection lost")

    class Model:
        def stream(self, request):
            return Stream() if end == "cannot be closed" else Closing()

    agent = Agent(model=Model())

    assert (await soon(agent.invoke_async("go"))).stop_reason == "cancelled"
    assert closed == ([] if end == "cannot be closed" else [True])
    await goes_on(agent)


@pytest.mark.parametrize("how", ["cancelled", "raises", "raises SystemExit"])
@pytest.mark.parametrize("place", ["around_tool_call", "around_tools"])
async def test_what_a_tool_came_to_is_told_when_a_hook_behind_it_does_not_get_to_its_end(how, place):
    async def around(self, subject, call_next):
        await call_next(subject)
        if how == "cancelled":
            agent.cancel()
            await asyncio.Event().wait()

        raise ValueError("hook") if how == "raises" else SystemExit("hook")

    async def body(call):
        return "it rang"

    async def around_tool_call(self, call, call_next):
        return await around(self, call, call_next)

    async def around_tools(self, batch, call_next):
        return await around(self, batch, call_next)

    chosen = around_tool_call if place == "around_tool_call" else around_tools
    agent = Agent(
        model=FakeModel(use("ring", tool_use_id="T")), tools=[FakeTool("ring", body)],
        plugins=[make_plugin(**{place: chosen})],
    )  # fmt: skip
    if how == "cancelled":
        assert (await soon(agent.invoke_async("go"))).stop_reason == "cancelled"
    else:
        with pytest.raises((ValueError, SystemExit), match="hook"):
            await agent.invoke_async("go")  # in this very task: a task that ends in SystemExit ends its loop

    assert results_of(agent.messages) == {"T": "it rang"}
    assert problems(agent.messages) == []


async def test_a_model_that_swallows_the_cancel_leaves_no_trace_of_it_in_the_task():
    waits, traces = asyncio.Event(), []

    async def stubborn():
        yield {"messageStart": {"role": "assistant"}}
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "so what"}}}

    async def around(self, request, call_next):
        outcome = await call_next(request)
        traces.append(asyncio.current_task().cancelling())
        return outcome

    agent = Agent(model=FakeModel(stubborn), plugins=[make_plugin(around_model_call=around)])
    task = asyncio.create_task(agent.invoke_async("go"))
    await soon(waits.wait())
    agent.cancel()

    assert (await soon(task)).stop_reason == "cancelled"
    assert traces == [0]
    await goes_on(agent)
