"""Calls that are repeats of one another."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import threading
import weakref

import pytest

from ropewalk import Agent, Denied, current_run, hookimpl, tool
from ropewalk.errors import ConcurrencyException, ModelError
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.kits.snapshot import Snapshot
from ropewalk_concurrency import ConcurrencyPlugin, ConcurrentInvocationMode, IdempotencyAbortedError
from ropewalk_concurrency.book import Book
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

BOUND = 60
"""Seconds for a whole test, also on a busy machine."""


def called_in_thread(agent, token):
    return asyncio.create_task(asyncio.to_thread(agent, "again", idempotency_token=token))


def awaited(agent, token):
    return asyncio.create_task(agent.invoke_async("again", idempotency_token=token))


def in_a_loop_of_its_own(agent, token):
    return asyncio.create_task(asyncio.to_thread(asyncio.run, agent.invoke_async("again", idempotency_token=token)))


def streamed(agent, token):
    async def drain():
        events = [event async for event in agent.stream_async("again", idempotency_token=token)]
        assert list(map(list, events)) == [["result"]]
        return events[0]["result"]

    return asyncio.create_task(drain())


WAYS = [called_in_thread, awaited, in_a_loop_of_its_own, streamed]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def repeat(request):
    """Repeats a call: `repeat(agent, token)` gives a task with its result."""
    return request.param


@pytest.fixture(params=WAYS[:3], ids=lambda way: way.__name__)
def start(request):
    """Makes the first call."""
    return request.param


@pytest.fixture(autouse=True)
async def _bounded():
    """Ends a test that hangs; a timeout around the `yield` would not, as the test is a task of its own."""
    loop = asyncio.get_running_loop()

    def give_up():
        for task in asyncio.all_tasks(loop):
            task.cancel(f"nothing happened for {BOUND} seconds")

    handle = loop.call_later(BOUND, give_up)
    yield
    handle.cancel()


# -- in flight ---------------------------------------------------------------------------------------------------


async def test_a_repetition_gets_the_very_same_result(silent_agent, waiting_for, start, repeat):
    """Conformance 144."""
    agent = silent_agent()
    first = start(agent, "T")
    await agent.model.wait_stalled()
    second = repeat(agent, "T")
    await waiting_for(agent, 1)
    agent.model.release()

    assert await second is await first
    assert (agent.model.calls, len(agent.messages)) == (1, 2)


async def test_many_repetitions_in_threads_and_loops_all_get_it(silent_agent, waiting_for):
    agent = silent_agent()
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    others = [way(agent, "T") for way in WAYS for _ in range(2)]  # few: to_thread has few threads
    await waiting_for(agent, len(others))
    agent.model.release()

    result = await first
    assert all([await other is result for other in others])
    assert agent.model.calls == 1


@pytest.mark.parametrize("token", [["a", 1], {"id": {1, 2}}, 0, "", 7.5, ("x",)], ids=repr)
async def test_tokens_are_compared_and_need_not_be_hashable(silent_agent, waiting_for, token):
    """Conformance 146."""
    agent = silent_agent()
    first = awaited(agent, token)
    await agent.model.wait_stalled()
    second = awaited(agent, copy.deepcopy(token))
    await waiting_for(agent, 1)
    agent.model.release()
    assert await second is await first


@pytest.mark.parametrize("other", ["U", None], ids=["another token", "no token"])
async def test_a_call_that_is_no_repetition_is_refused(silent_agent, other):
    agent = silent_agent()
    first = awaited(agent, "T")
    await agent.model.wait_stalled()

    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("other", idempotency_token=other)

    agent.model.release()
    assert str(await first) == "first\n"


async def test_a_token_does_not_join_a_call_without_one(silent_agent):
    agent = silent_agent()
    first = awaited(agent, None)
    await agent.model.wait_stalled()
    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("other", idempotency_token="T")

    agent.model.release()
    await first


async def test_agents_do_not_share_tokens(silent_agent):
    one, other = silent_agent("one"), silent_agent("other")
    calls = [awaited(one, "T"), awaited(other, "T")]
    await one.model.wait_stalled()
    await other.model.wait_stalled()
    one.model.release()
    other.model.release()
    assert [str(await call) for call in calls] == ["one\n", "other\n"]


async def test_a_token_is_forgotten_when_its_call_has_ended():
    agent = Agent(model=ScriptedModel(["one", "two"]), callback_handler=None)
    assert [str(await awaited(agent, "T")) for _ in range(2)] == ["one\n", "two\n"]


async def test_followers_hear_of_the_result_once_more(silent_agent, waiting_for):
    """Conformance 144."""

    class Ears:
        name = "ears"

        def __init__(self):
            self.heard = []

        @hookimpl
        async def on_event(self, event):
            self.heard += [each for key, each in event.as_dict().items() if key == "result"]

    ears = Ears()
    agent = silent_agent(plugins=[ears])
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    agent.model.release()
    result = await first
    await second

    assert len(ears.heard) == 2
    assert all(each is result for each in ears.heard)


# -- ends that are no result -------------------------------------------------------------------------------------


async def test_a_repetition_gets_the_error_of_the_first(silent_agent, waiting_for, start, repeat):
    error = ModelError("broken")
    agent = silent_agent("half", error=error)
    first = start(agent, "T")
    await agent.model.wait_stalled()
    second = repeat(agent, "T")
    await waiting_for(agent, 1)
    agent.model.release()

    for call in (first, second):
        with pytest.raises(ModelError, match="broken") as caught:
            await call
        assert caught.value is error


async def test_a_first_call_whose_task_is_cancelled_aborts_its_repetitions(silent_agent, waiting_for, repeat):
    agent = silent_agent("first", "second")
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second = repeat(agent, "T")
    await waiting_for(agent, 1)
    first.cancel()

    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(IdempotencyAbortedError, match="without a result: call again"):
        await second

    assert str(await awaited(agent, "T")) == "second\n"


async def test_a_first_call_whose_stream_is_closed_aborts_its_repetitions(silent_agent, waiting_for):
    agent = silent_agent("first", "second")
    stream = agent.stream_async("go", idempotency_token="T")
    async for event in stream:
        if "start_event_loop" in event:
            break

    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    await stream.aclose()
    with pytest.raises(IdempotencyAbortedError):
        await second


async def test_a_first_call_that_the_agent_cancels_has_a_result(silent_agent, waiting_for):
    agent = silent_agent()
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    agent.cancel()

    assert await second is await first
    assert (await first).stop_reason == "cancelled"


async def test_a_repetition_that_is_cancelled_leaves_the_others_alone(silent_agent, waiting_for):
    agent = silent_agent()
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second, third = awaited(agent, "T"), awaited(agent, "T")
    await waiting_for(agent, 2)
    second.cancel()
    await waiting_for(agent, 1)
    agent.model.release()

    assert await third is await first
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_refused_call_refuses_its_repetitions(silent_agent, waiting_for):
    go_on = asyncio.Event()

    class Guard:
        name = "guard"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            await go_on.wait()
            return Denied("not today")

    agent = silent_agent(plugins=[Guard()])
    first = awaited(agent, "T")
    await asyncio.sleep(0)
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    go_on.set()
    assert [str(await call) for call in (first, second)] == ["not today\n", "not today\n"]


class SlowStart:
    """Keeps a first run from the hooks until the test lets it go on, or fails it."""

    name = "slow-start"

    def __init__(self):
        self.go_on = asyncio.Event()
        self.error = None

    @hookimpl
    async def init_agent(self):
        await self.go_on.wait()
        if self.error is not None:
            raise self.error


async def test_a_call_that_is_still_being_prepared_can_be_joined(waiting_for):
    slow = SlowStart()
    agent = Agent(model=ScriptedModel(["hi"]), plugins=[slow], callback_handler=None)
    first = awaited(agent, "T")
    await asyncio.sleep(0)
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    slow.go_on.set()
    assert await second is await first


async def test_a_call_that_fails_while_it_is_prepared_aborts_its_repetitions(waiting_for):
    slow = SlowStart()
    slow.error = OSError("no connection")
    agent = Agent(model=ScriptedModel(["hi"]), plugins=[slow], callback_handler=None)
    first = awaited(agent, "T")
    await asyncio.sleep(0)
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    slow.go_on.set()
    with pytest.raises(OSError, match="no connection"):
        await first
    with pytest.raises(IdempotencyAbortedError, match="ended before it began"):
        await second


class SlowEnd:
    """Keeps a run from its end, when the hooks are through with it."""

    name = "slow-end"

    def __init__(self):
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    @hookimpl
    async def manage_context(self, reason):
        if reason == "after_invocation":
            self.reached.set()
            await self.go_on.wait()


async def test_a_call_that_is_being_put_away_can_be_repeated():
    slow = SlowEnd()
    agent = Agent(model=ScriptedModel(["hi", "ho"]), plugins=[slow], callback_handler=None)
    first = awaited(agent, "T")
    await slow.reached.wait()
    second = await agent.invoke_async("again", idempotency_token="T")
    slow.go_on.set()
    assert second is await first
    assert str(await agent.invoke_async("later", idempotency_token="T")) == "ho\n"


class Freed:
    """Ends the call under way in the very moment in which another one was refused."""

    name = "freed"
    order = -2000

    def __init__(self):
        self.first = None

    @hookimpl
    async def admit(self, agent):
        agent.model.release()
        await self.first


@pytest.mark.parametrize("between", [False, True], ids=["at once", "another call between"])
async def test_a_call_that_has_just_ended_answers_who_found_the_agent_busy(silent_agent, between):
    freed = Freed()
    agent = silent_agent("first", "second", "third", plugins=[freed])
    freed.first = awaited(agent, "T")
    await agent.model.wait_stalled()
    assert await agent.invoke_async("again", idempotency_token="T") is await freed.first
    if between:
        await agent.invoke_async("other")

    assert str(await awaited(agent, "T")) == ("third\n" if between else "second\n")


async def test_an_older_call_does_not_answer_who_found_the_agent_busy_with_another(silent_agent):
    freed = Freed()
    agent = silent_agent("second", plugins=[freed])
    agent.model._queue.insert(0, agent.model._entry("first"))
    await awaited(agent, "T")
    freed.first = awaited(agent, None)
    await agent.model.wait_stalled()
    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("again", idempotency_token="T")


# -- calls within calls ------------------------------------------------------------------------------------------


class Nested:
    """A tool that calls an agent."""

    tool_name = "nested"
    tool_spec = {"name": "nested", "description": "", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    def __init__(self):
        self.body = None

    async def invoke(self, call):
        text = str(await self.body())
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def caller():
    tool = Nested()
    return tool, Agent(model=ScriptedModel([use("nested"), "done"]), tools=[tool], callback_handler=None)


async def refused(call):
    with pytest.raises(ConcurrencyException):
        await call
    return "refused"


async def test_a_call_that_would_wait_for_itself_is_refused():
    tool, agent = caller()
    tool.body = lambda: refused(agent.invoke_async("nested", idempotency_token="T"))
    assert str(await agent.invoke_async("go", idempotency_token="T")) == "done\n"
    assert agent.messages[2]["content"][0]["toolResult"]["status"] == "success"
    assert_valid_history(agent.messages)


async def test_a_synchronous_call_that_would_wait_for_itself_is_refused():
    tool, agent = caller()
    tool.body = lambda: refused(asyncio.to_thread(agent, "nested", idempotency_token="T"))
    assert str(await asyncio.to_thread(agent, "go", idempotency_token="T")) == "done\n"


async def test_a_call_that_would_wait_for_itself_through_another_agent_is_refused():
    outer_tool, outer = caller()
    inner_tool, inner = caller()
    outer_tool.body = lambda: inner.invoke_async("in", idempotency_token="I")
    inner_tool.body = lambda: refused(outer.invoke_async("out", idempotency_token="O"))
    assert str(await outer.invoke_async("go", idempotency_token="O")) == "done\n"


async def test_calls_that_would_wait_for_each_other_do_not(waiting_for):
    one_tool, one = caller()
    two_tool, two = caller()
    both = asyncio.Barrier(2)
    refusals = []

    def joins(other, token):
        async def body():
            await both.wait()
            try:
                return await other.invoke_async("join", idempotency_token=token)
            except ConcurrencyException:
                refusals.append(token)
                return "refused"

        return body

    one_tool.body, two_tool.body = joins(two, "two"), joins(one, "one")
    calls = [one.invoke_async("go", idempotency_token="one"), two.invoke_async("go", idempotency_token="two")]
    assert list(map(str, await asyncio.gather(*calls))) == ["done\n", "done\n"]
    assert len(refusals) == 1


# -- remembered --------------------------------------------------------------------------------------------------


def remembering(*script, **options):
    return Agent(model=ScriptedModel(list(script)), plugins=[("concurrency", options)], callback_handler=None)


async def test_a_result_is_remembered_when_asked_for(clock):
    agent = remembering("one", "two", remember_seconds=60)
    first = await awaited(agent, "T")
    clock.now += 59
    assert await awaited(agent, "T") is first
    assert (agent.model.calls, len(agent.messages)) == (1, 2)
    clock.now += 2
    assert str(await awaited(agent, "T")) == "two\n"


async def test_so_many_results_are_remembered_and_no_more():
    agent = remembering(*map(str, range(9)), remember_count=2)
    results = [await awaited(agent, token) for token in "abc"]
    assert [await awaited(agent, token) for token in "cb"] == [results[2], results[1]]
    assert agent.model.calls == 3
    assert str(await awaited(agent, "a")) == "3\n"


async def test_a_remembered_result_is_had_while_the_agent_is_busy():
    agent = remembering("one", turn("two", stall=True, stall_first=True), remember_count=5)
    first = await awaited(agent, "T")
    second = awaited(agent, "U")
    await agent.model.wait_stalled()
    assert await awaited(agent, "T") is first
    agent.model.release()
    await second


async def test_errors_and_cancelled_calls_are_not_remembered():
    agent = remembering(ModelError("broken"), turn("two", stall=True, stall_first=True), "three", remember_count=5)
    with pytest.raises(ModelError):
        await awaited(agent, "T")

    second = awaited(agent, "T")
    await agent.model.wait_stalled()
    agent.cancel()
    assert (await second).stop_reason == "cancelled"
    assert str(await awaited(agent, "T")) == "three\n"


async def test_a_stream_of_a_remembered_call_ends_in_its_result():
    agent = remembering("one", remember_count=5)
    first = await awaited(agent, "T")
    events = [event async for event in agent.stream_async("again", idempotency_token="T")]
    assert events[-1]["result"] is first
    assert not any("data" in event for event in events)


# -- the rest ----------------------------------------------------------------------------------------------------


async def test_overlapping_calls_ignore_tokens():
    mode = ConcurrentInvocationMode.UNSAFE_REENTRANT
    script = [turn("one", stall=True, stall_first=True), "two"]
    agent = Agent(model=ScriptedModel(script), concurrent_invocation_mode=mode, callback_handler=None)
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second = awaited(agent, "T")
    assert str(await second) == "two\n"
    agent.model.release()
    assert str(await first) == "one\n"
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("fails", [False, True], ids=["a result", "an error"])
def test_a_token_keeps_no_agent_alive(fails):
    agent = Agent(model=ScriptedModel([ModelError("broken") if fails else "hi"]), callback_handler=None)
    with contextlib.suppress(ModelError):
        agent("go", idempotency_token="T", invocation_state={"agent": agent})

    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


async def test_what_was_joined_keeps_no_error_alive(silent_agent, waiting_for):
    class MarkedError(ModelError):
        pass

    agent = silent_agent("half", error=MarkedError("broken"))
    calls = [awaited(agent, "T")]
    await agent.model.wait_stalled()
    calls.append(awaited(agent, "T"))
    await waiting_for(agent, 1)
    agent.model.release()
    await asyncio.wait(calls)
    assert all(isinstance(call.exception(), MarkedError) for call in calls)
    gone = weakref.ref(agent)
    del agent, calls
    gc.collect()
    assert gone() is None


def test_a_book_is_safe_between_threads():
    """Each thread's calls find their own flights, however they interleave."""

    class Idle:
        _runs = ()

    class Running:
        def __init__(self, options, number):
            self.options, self.id = options, f"run_{number}"

    class Options:
        def __init__(self, token):
            self.given = {"idempotency_token": token}

    agent = Idle()
    agent._runs = [Running(Options(i), i) for i in range(50)]
    book = Book(0, 1)
    found = {}

    def use_it(run):
        flight = book.begin(run.id, run.options.given["idempotency_token"], agent)
        found[run.id] = flight.call

    threads = [threading.Thread(target=use_it, args=(run,)) for run in agent._runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {run.id: run.id for run in agent._runs}


def test_the_plugin_is_active_unasked():
    assert any(isinstance(plugin, ConcurrencyPlugin) for plugin in Agent().hooks.plugins)


def links_around(agent):
    return [link.plugin_name for link in agent.hooks.plan.around_invocation]


async def test_only_agents_that_got_a_token_pay_for_tokens():
    agent = Agent(model=ScriptedModel(["one", "two", "three", "four"]), callback_handler=None)
    await agent.invoke_async("hi")
    await agent.invoke_async("hi", idempotency_token=None)
    assert links_around(agent) == []
    for token in ("T", "U"):
        await agent.invoke_async("hi", idempotency_token=token)
        assert links_around(agent) == ["concurrency-tokens"]

    assert links_around(Agent()) == []


async def test_tokens_stand_outside_of_what_wraps_the_call():
    class Inner:
        name = "inner"
        order = -999

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            return await call_next(invocation)

    agent = Agent(model=ScriptedModel(["one"]), plugins=[Inner()], callback_handler=None)
    await agent.invoke_async("hi", idempotency_token="T")
    assert links_around(agent) == ["concurrency-tokens", "inner"]


async def test_a_token_that_was_refused_on_a_busy_agent_is_known_at_the_next_call(silent_agent, waiting_for):
    agent = silent_agent()
    without = asyncio.create_task(agent.invoke_async("go"))
    await agent.model.wait_stalled()
    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("go", idempotency_token="T")

    agent.model.release()
    await without
    agent.model = ScriptedModel([turn("second", stall=True, stall_first=True)])
    first = awaited(agent, "T")
    await agent.model.wait_stalled()
    second = awaited(agent, "T")
    await waiting_for(agent, 1)
    agent.model.release()
    assert await second is await first


async def test_threads_that_bring_an_agent_its_first_tokens_at_once_give_it_one_keeper(silent_agent):
    agent = silent_agent()
    first = asyncio.create_task(agent.invoke_async("go"))
    await agent.model.wait_stalled()
    calls = [called_in_thread(agent, number) for number in range(8)]
    await asyncio.wait(calls)
    assert all(isinstance(call.exception(), ConcurrencyException) for call in calls)
    assert links_around(agent) == ["concurrency-tokens"]
    agent.model.release()
    await first


async def test_a_clone_of_an_agent_with_tokens_has_a_book_of_its_own():
    agent = Agent(
        model=ScriptedModel(["one", "two"]), plugins=[("concurrency", {"remember_seconds": 60})], callback_handler=None
    )
    first = await agent.invoke_async("hi", idempotency_token="T")
    other = await agent.clone().invoke_async("hi", idempotency_token="T")
    assert [str(first), str(other)] == ["one\n", "two\n"]


# -- in another process --------------------------------------------------------------------------------------------


@tool
def ask() -> str:
    """Asks first."""
    return str(current_run().interrupt("sure"))


def test_a_run_with_a_token_that_waits_goes_on_without_one_in_another_process():
    first = Agent(ScriptedModel([use("ask", {})]), tools=[ask], callback_handler=None)
    (question,) = first("go", idempotency_token="t").interrupts
    saved = first.take_snapshot(preset="session").to_dict()

    second = Agent(ScriptedModel(["done"]), tools=[ask], callback_handler=None)
    second.load_snapshot(Snapshot.from_dict(saved))
    result = second([{"interruptResponse": {"interruptId": question.id, "response": "yes"}}])

    assert (str(result), second.suspension) == ("done\n", None)


@pytest.mark.parametrize("options", [{}, {"remember_count": 5}], ids=["forgetting", "remembering"])
async def test_answers_with_the_token_of_the_call_that_asked_are_heard(options):
    model = ScriptedModel([use("ask", {}), "done"])
    agent = Agent(model, tools=[ask], plugins=[("concurrency", options)], callback_handler=None)
    (question,) = (await agent.invoke_async("go", idempotency_token="t")).interrupts
    answer = [{"interruptResponse": {"interruptId": question.id, "response": "yes"}}]
    result = await agent.invoke_async(answer, idempotency_token="t")
    assert (result.stop_reason, str(result), agent.suspension) == ("end_turn", "done\n", None)


async def test_a_pause_answers_no_repetition_while_its_run_goes_on(silent_agent):
    agent = silent_agent("done", tools=[ask])
    stalled = agent.model
    agent.model = ScriptedModel([use("ask", {})])
    (question,) = (await agent.invoke_async("go", idempotency_token="t")).interrupts
    agent.model = stalled
    answer = [{"interruptResponse": {"interruptId": question.id, "response": "yes"}}]
    going_on = asyncio.create_task(agent.invoke_async(answer, idempotency_token="u"))
    await stalled.wait_stalled()
    repetition = asyncio.create_task(agent.stream_async("go", idempotency_token="t").__anext__())
    try:
        with pytest.raises(ConcurrencyException):
            await repetition
    finally:
        stalled.release()

    assert str(await going_on) == "done\n"


async def test_a_paused_run_does_not_go_on_beside_another():
    """It goes on in the agent's own history, and nowhere else."""
    begun, end = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        begun.set()
        await end.wait()
        return "waited"

    def say(request):
        words = request.messages[-1]["content"][0].get("text")
        return use(words, {}) if words in ("ask", "wait") else "done"

    model = ScriptedModel(say)
    agent = Agent(model, tools=[ask, wait], callback_handler=None, concurrent_invocation_mode="unsafe_reentrant")
    asking = asyncio.create_task(agent.invoke_async("ask"))
    await asyncio.sleep(0)
    beside = asyncio.create_task(agent.invoke_async("wait"))
    (question,) = (await asking).interrupts
    await begun.wait()
    answer = [{"interruptResponse": {"interruptId": question.id, "response": "yes"}}]
    try:
        with pytest.raises(ConcurrencyException, match="is busy with another invocation"):
            await agent.invoke_async(answer)
    finally:
        end.set()

    await beside
    assert str(await agent.invoke_async(answer)) == "done\n"
    assert agent.suspension is None
    assert_valid_history(agent.messages)


async def test_a_call_whose_loop_stands_still_until_its_repetition_is_over_is_not_waited_for(silent_agent):
    """A synchronous callback, or a cell of a notebook, repeats a call that is under way in its own event loop."""
    agent = silent_agent()
    task = asyncio.create_task(agent.invoke_async("go", idempotency_token="t"))
    await agent.model.wait_stalled()

    with pytest.raises(ConcurrencyException):
        run_blocking(lambda: asyncio.wait_for(agent.invoke_async("go", idempotency_token="t"), 5), lambda: None)

    repeated = asyncio.create_task(agent.invoke_async("go", idempotency_token="t"))
    await asyncio.sleep(0)
    agent.model.release()
    assert (await repeated) is (await task)
