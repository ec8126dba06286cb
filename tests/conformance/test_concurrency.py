"""Calls on a busy agent: refused, beside, or repeated (conformance 142 to 146)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import ConcurrentInvocationMode, IdempotencyAbortedError, tool
from ropewalk.errors import ConcurrencyException, ModelError
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

PATIENCE = 30
"""Seconds after which something that should have happened is given up as failed."""
BOUND = 60
"""Seconds for a whole test, also on a busy machine."""


def silent(*blocks, **faults):
    return turn(*blocks, stall=True, stall_first=True, **faults)


def call_later(agent, prompt, **options):
    return asyncio.create_task(agent.invoke_async(prompt, **options))


async def settle():
    """Lets the tasks of this loop get as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


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


# -- 142: refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, ConcurrentInvocationMode.THROW, "throw"], ids=str)
async def test_a_second_call_is_refused_and_the_agent_goes_on(make_agent, mode):
    """Conformance 142."""
    given = {} if mode is None else {"concurrent_invocation_mode": mode}
    agent, model = make_agent([silent("one"), "two"], **given)
    first = call_later(agent, "1")
    await model.wait_stalled()

    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("refused")

    model.release()
    assert [str(await first), str(await agent.invoke_async("2"))] == ["one\n", "two\n"]
    assert agent.concurrent_invocation_mode == "throw"
    assert_valid_history(agent.messages)


async def test_a_stream_that_is_left_frees_the_agent(make_agent):
    """Conformance 142."""
    agent, model = make_agent([silent("one"), "two"])
    stream = agent.stream_async("1")
    async for event in stream:
        if "start_event_loop" in event:
            break

    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("refused")

    await stream.aclose()
    model.release()
    assert (await agent.invoke_async("2")).stop_reason == "end_turn"


# -- 143: beside -------------------------------------------------------------------------------------------------


@pytest.fixture
def reentrant(make_agent):
    def make(script, **parameters):
        mode = ConcurrentInvocationMode.UNSAFE_REENTRANT
        return make_agent(script, concurrent_invocation_mode=mode, **parameters)

    return make


async def test_calls_that_overlap_both_run(reentrant, shape):
    """Conformance 143."""
    agent, model = reentrant(["zero", silent("one"), "two"])
    await agent.invoke_async("0")
    first = call_later(agent, "1")
    await model.wait_stalled()

    assert str(await agent.invoke_async("2")) == "two\n"
    model.release()
    assert str(await first) == "one\n"

    texts = [content[0]["text"] for _, content in shape(agent.messages)]
    assert sorted([texts[2:4], texts[4:6]]) == [["1", "one"], ["2", "two"]]
    assert texts[:2] == ["0", "zero"]
    assert len(texts) == 6
    assert_valid_history(agent.messages)


async def test_a_call_does_not_see_the_prompt_that_the_other_one_answers(reentrant, shape):
    """Conformance 143."""
    agent, model = reentrant(["zero", silent("one"), "two"])
    await agent.invoke_async("0")
    first = call_later(agent, "1")
    await model.wait_stalled()
    await agent.invoke_async("2")
    model.release()
    await first

    assert [shape(request.messages)[-1] for request in model.requests] == [
        ("user", [{"text": "0"}]),
        ("user", [{"text": "1"}]),
        ("user", [{"text": "2"}]),
    ]


async def test_many_calls_with_tools_overlap_and_each_block_is_whole(reentrant, shape):
    """Conformance 143."""

    @tool
    async def pause() -> str:
        """Pauses."""
        for _ in range(3):
            await asyncio.sleep(0)

        return "paused"

    def answer(request):
        last = request.messages[-1]["content"][0]
        return use("pause", {}) if "text" in last else "done"

    agent, model = reentrant(answer, tools=[pause])
    results = await asyncio.gather(*(agent.invoke_async(str(i)) for i in range(6)))

    assert [str(result) for result in results] == ["done\n"] * 6
    assert model.calls == 12
    messages = shape(agent.messages)
    blocks = [messages[start : start + 4] for start in range(0, 24, 4)]
    assert len(messages) == 24
    assert sorted(block[0][1][0]["text"] for block in blocks) == list("012345")
    assert all(
        [next(iter(content[0])) for _, content in block] == ["text", "toolUse", "toolResult", "text"]
        for block in blocks
    )
    assert_valid_history(agent.messages)


async def test_overlapping_calls_take_no_notice_of_tokens(reentrant):
    """Conformance 143."""
    agent, model = reentrant([silent("one"), "two"])
    first = call_later(agent, "1", idempotency_token="T")
    await model.wait_stalled()
    assert str(await agent.invoke_async("2", idempotency_token="T")) == "two\n"
    model.release()
    assert (str(await first), model.calls) == ("one\n", 2)


async def test_an_error_of_one_call_is_its_own(reentrant):
    """Conformance 143."""
    agent, model = reentrant([silent("half", error=ModelError("broken")), "two"])
    first = call_later(agent, "1")
    await model.wait_stalled()
    assert str(await agent.invoke_async("2")) == "two\n"
    model.release()
    with pytest.raises(ModelError, match="broken"):
        await first

    assert_valid_history(agent.messages)
    assert agent.concurrent_invocation_mode is ConcurrentInvocationMode.UNSAFE_REENTRANT


@pytest.mark.parametrize("mode", ["sometimes", 1, ...], ids=str)
def test_what_is_no_mode_is_a_value_error(make_agent, mode):
    """Conformance 143."""
    with pytest.raises(ValueError, match="concurrent_invocation_mode="):
        make_agent(["hi"], concurrent_invocation_mode=mode)


# -- 144: repeated -----------------------------------------------------------------------------------------------


async def test_one_token_in_flight_is_one_model_call_and_one_result(make_agent, shape):
    """Conformance 144."""
    agent, model = make_agent([silent("one")])
    calls = [call_later(agent, "go", idempotency_token="T") for _ in range(4)]
    await model.wait_stalled()
    await settle()
    model.release()

    results = [await call for call in calls]
    assert all(result is results[0] for result in results)
    assert model.calls == 1
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "one"}])]


def test_threads_with_one_token_get_one_result(make_agent):
    """Conformance 144."""
    agent, model = make_agent([silent("one"), *map(str, range(8))])
    results = []
    callers = [threading.Thread(target=lambda: results.append(agent("go", idempotency_token="T"))) for _ in range(8)]
    for caller in callers:
        caller.start()

    assert model.stalled.wait(PATIENCE)
    model.release()
    for caller in callers:
        caller.join(PATIENCE)

    # How many come while the first is under way is up to the machine: each model call has one result, and all get one.
    assert len(results) == 8
    assert len({id(result) for result in results}) == model.calls


async def test_a_repetition_streams_its_result_alone(make_agent):
    """Conformance 144."""
    agent, model = make_agent([silent("one")])
    first = call_later(agent, "go", idempotency_token="T")
    await model.wait_stalled()

    async def drain():
        return [event async for event in agent.stream_async("go", idempotency_token="T")]

    second = asyncio.create_task(drain())
    await settle()
    model.release()
    assert await second == [{"result": await first}]


async def test_a_callback_handler_hears_of_the_result_of_each_call(make_agent):
    """Conformance 144."""
    heard = []
    agent, model = make_agent(
        ScriptedModel([silent("one")]), callback_handler=lambda **event: heard.append(event.get("result"))
    )
    calls = [call_later(agent, "go", idempotency_token="T") for _ in range(2)]
    await model.wait_stalled()
    await settle()
    model.release()
    result = await calls[0]
    await calls[1]
    assert [each for each in heard if each is not None] == [result, result]


async def test_the_error_of_the_first_call_is_that_of_its_repetitions(make_agent):
    """Conformance 144."""
    agent, model = make_agent([silent("half", error=ModelError("broken")), "two"])
    calls = [call_later(agent, "go", idempotency_token="T") for _ in range(3)]
    await model.wait_stalled()
    await settle()
    model.release()

    for call in calls:
        with pytest.raises(ModelError, match="broken"):
            await call

    assert (model.calls, str(await agent.invoke_async("go", idempotency_token="T"))) == (1, "two\n")


@pytest.mark.parametrize("how", ["task", "stream"])
async def test_a_first_call_that_is_cut_off_aborts_its_repetitions(make_agent, how):
    """Conformance 144."""
    agent, model = make_agent([silent("one"), "two"])
    if how == "task":
        first = call_later(agent, "go", idempotency_token="T")
        await model.wait_stalled()
    else:
        stream = agent.stream_async("go", idempotency_token="T")
        async for event in stream:
            if "start_event_loop" in event:
                break

    second = call_later(agent, "go", idempotency_token="T")
    await settle()
    if how == "task":
        first.cancel()
    else:
        await stream.aclose()

    with pytest.raises(IdempotencyAbortedError):
        await second

    model.release()
    assert (await agent.invoke_async("go", idempotency_token="T")).stop_reason == "end_turn"


@pytest.mark.parametrize("token", ["U", None, ["T"]], ids=str)
async def test_another_token_is_refused(make_agent, token):
    """Conformance 144."""
    agent, model = make_agent([silent("one")])
    first = call_later(agent, "go", idempotency_token="T")
    await model.wait_stalled()
    with pytest.raises(ConcurrencyException):
        await agent.invoke_async("go", idempotency_token=token)

    model.release()
    await first


async def test_a_call_with_the_token_of_an_ended_one_runs(make_agent):
    """Conformance 144."""
    agent, model = make_agent(["one", "two"])
    assert [str(await agent.invoke_async("go", idempotency_token="T")) for _ in range(2)] == ["one\n", "two\n"]
    assert model.calls == 2


async def test_a_remembered_call_is_not_run_again(make_agent):
    """Conformance 144."""
    agent, model = make_agent(["one", "two"], plugins=[("concurrency", {"remember_seconds": 3600})])
    results = [await agent.invoke_async("go", idempotency_token="T") for _ in range(2)]
    assert (results[0] is results[1], model.calls, len(agent.messages)) == (True, 1, 2)


async def test_a_tool_that_repeats_the_call_that_it_is_part_of_is_refused(make_agent, tool_results, result_text):
    """Conformance 144."""

    @tool
    async def again() -> str:
        """Calls its own agent."""
        return str(await agent.invoke_async("nested", idempotency_token="T"))

    agent, _ = make_agent([use("again", {}), "ok"], tools=[again])

    assert str(await agent.invoke_async("go", idempotency_token="T")) == "ok\n"
    (result,) = tool_results(agent.messages)
    assert "ConcurrencyException" in result_text(result)


# -- 146: any token ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_token", [lambda: {"id": [1]}, lambda: [1, 2], lambda: {1}, lambda: 0, lambda: ""])
async def test_a_token_need_not_be_hashable(make_agent, make_token):
    """Conformance 146."""
    agent, model = make_agent([silent("one")])
    calls = [call_later(agent, "go", idempotency_token=make_token()) for _ in range(2)]
    await model.wait_stalled()
    await settle()
    model.release()
    assert await calls[0] is await calls[1]
    assert model.calls == 1
