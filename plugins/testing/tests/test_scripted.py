"""The model that plays a script."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading

import pytest

from ropewalk.errors import ModelError, ModelThrottledException
from ropewalk.model import Model, ModelRequest
from ropewalk_testing import ScriptedModel, ScriptError, ScriptExhausted, turn, use


def request(*texts):
    return ModelRequest(messages=[{"role": "user", "content": [{"text": each}]} for each in texts or ("hi",)])


async def play(model, asked=None):
    return [event async for event in model.stream(asked or request())]


async def said(model, asked=None):
    found = [event["contentBlockDelta"]["delta"] for event in await play(model, asked) if "contentBlockDelta" in event]
    return "".join(delta["text"] for delta in found)


async def play_to_the_error(model):
    seen = []
    with contextlib.suppress(ModelError):
        async for event in model.stream(request()):
            seen.append(next(iter(event)))  # noqa: PERF401 - what was seen before the error must be kept

    return seen


def test_it_is_a_model():
    assert isinstance(ScriptedModel(["a"]), Model)


async def test_one_turn_is_played_per_call():
    model = ScriptedModel(["one", "two"])

    assert [await said(model), await said(model)] == ["one", "two"]
    assert (model.calls, model.active, model.aborted) == (2, 0, 0)


@pytest.mark.parametrize(("turns", "counted"), [([], "has 0 turns and call 1"), (["a"], "has 1 turn and call 2")])
async def test_an_exhausted_script_says_how_many_turns_it_had(turns, counted):
    model = ScriptedModel(turns)
    for _ in turns:
        await play(model)

    with pytest.raises(ScriptExhausted, match=counted) as caught:
        await play(model)

    assert caught.value.turns == len(turns)
    assert not isinstance(caught.value, ModelError)
    assert model.calls == len(turns)


async def test_turns_can_be_added_later():
    model = ScriptedModel(["one"])
    model.add("two")

    assert [await said(model), await said(model)] == ["one", "two"]


async def test_an_endless_script_is_read_as_calls_are_made():
    model = ScriptedModel(itertools.cycle(["tick", "tock"]))

    assert [await said(model) for _ in range(3)] == ["tick", "tock", "tick"]


async def test_a_function_answers_every_call_and_sees_the_request():
    model = ScriptedModel(lambda asked: f"{len(asked.messages)} messages")

    assert await said(model, request("a", "b")) == "2 messages"
    assert await said(model, request("a")) == "1 messages"


async def test_a_function_among_the_turns_may_be_asynchronous():
    async def later(asked):
        await asyncio.sleep(0)
        return turn(asked.messages[0]["content"][0]["text"], deltas=2)

    assert await said(ScriptedModel([later]), request("echo")) == "echo"


@pytest.mark.parametrize("script", ["hello", {"text": "a"}, ValueError("a"), 3, b"a"])
def test_what_is_no_script_is_refused(script):
    with pytest.raises(ScriptError, match="a script is a list of turns"):
        ScriptedModel(script)


def test_a_wrong_turn_is_refused_when_the_script_is_read():
    with pytest.raises(ScriptError, match="None is no turn"):
        ScriptedModel(["fine", None])


# -- what it keeps -------------------------------------------------------------------------------------------------


async def test_requests_are_copies_that_later_edits_do_not_reach():
    model = ScriptedModel(["a"])
    asked = request("before")

    await play(model, asked)
    asked.messages[0]["content"][0]["text"] = "after"

    assert model.requests[0].messages == [{"role": "user", "content": [{"text": "before"}]}]
    assert model.last_request is model.requests[0]


async def test_a_recorded_request_keeps_its_other_fields():
    state = {"tenant": object()}
    spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {}}}
    asked = ModelRequest([], ({"text": "be brief"},), (spec,), {"any": {}}, {"type": "object"}, state, "summary")
    model = ScriptedModel(["a"])

    await play(model, asked)

    assert model.last_request == asked
    assert model.last_request.tool_specs[0] is not spec
    assert model.last_request.invocation_state is state


async def test_nothing_is_kept_when_recording_is_off():
    model = ScriptedModel(["a"], record=False)

    await play(model)

    assert (model.calls, model.requests) == (1, [])
    with pytest.raises(ScriptError, match="record=False"):
        _ = model.last_request


def test_calls_from_many_threads_are_all_counted():
    model = ScriptedModel(["a"] * 400)
    threads = [threading.Thread(target=lambda: [asyncio.run(play(model)) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (model.calls, len(model.requests), model.active) == (400, 400, 0)


def test_window_and_count_are_settable():
    assert ScriptedModel(["a"]).context_window is None
    assert not hasattr(ScriptedModel(["a"]), "count_tokens")
    assert ScriptedModel(["a"], context_window=100).context_window == 100
    assert ScriptedModel(["a"], count_tokens=7).count_tokens(request()) == 7
    assert ScriptedModel(["a"], count_tokens=lambda asked: len(asked.messages)).count_tokens(request("a", "b")) == 2


# -- faults --------------------------------------------------------------------------------------------------------


async def test_an_exception_is_raised_before_the_stream_opens():
    assert await play_to_the_error(ScriptedModel([ModelThrottledException("slow down")])) == []


async def test_an_error_can_come_after_the_blocks():
    seen = await play_to_the_error(ScriptedModel([turn("half", error=ModelThrottledException("slow down"))]))

    assert seen == ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop"]


async def test_one_exception_object_can_be_raised_again_and_again():
    error = ModelThrottledException("slow down")
    model = ScriptedModel([error] * 3)
    depths = []
    for _ in range(3):
        with pytest.raises(ModelThrottledException) as caught:
            await play(model)

        depths.append(len(caught.traceback))

    assert len(set(depths)) == 1
    assert model.aborted == 0


@pytest.mark.parametrize(("blocks", "count"), [((), 0), (("half",), 4)])
async def test_a_cut_stream_ends_without_a_stop(blocks, count):
    seen = await play(ScriptedModel([turn(*blocks, cut=True)]))

    assert len(seen) == count
    assert not any("messageStop" in event for event in seen)


async def test_raw_events_are_streamed_as_they_are():
    raw = [{"contentBlockDelta": {"delta": {"text": "no start"}}}, {"nonsense": {}}]

    assert await play(ScriptedModel([turn(raw=raw)])) == raw
    assert await play_to_the_error(ScriptedModel([turn(raw=raw, error=ModelError("gone"))])) == [
        "contentBlockDelta",
        "nonsense",
    ]


@pytest.mark.parametrize(
    ("played", "before"),
    [
        (lambda stall: turn(stall=stall), 0),
        (lambda stall: turn("a", stall=stall, stall_first=True), 0),
        (lambda stall: turn("a", stall=stall), 4),
    ],
)
@pytest.mark.parametrize("event", [asyncio.Event, threading.Event])
async def test_a_stall_lasts_until_its_event(event, played, before):
    until = event()
    model = ScriptedModel([played(until)])
    seen = []

    async def read():
        async for each in model.stream(request()):
            seen.append(each)  # noqa: PERF401 - read while it grows

    reading = asyncio.create_task(read())
    await model.wait_stalled()

    assert len(seen) == before
    assert not reading.done()

    until.set()
    await reading
    assert next(iter(seen[-2])) == "messageStop"


async def test_release_ends_stalls_under_way_and_to_come():
    model = ScriptedModel([turn("one", stall=True), turn("two", stall=3600.0)])
    first = asyncio.create_task(said(model))
    await model.wait_stalled()

    model.release()

    assert await first == "one"
    assert await said(model) == "two"


async def test_a_stalled_model_can_be_cancelled():
    model = ScriptedModel([turn("a", stall=3600)])
    reading = asyncio.create_task(play(model))
    await model.wait_stalled()
    assert model.active == 1

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert (model.active, model.aborted) == (0, 1)


async def test_a_stream_that_is_closed_early_counts_as_aborted():
    model = ScriptedModel(["a", "b"])
    stream = model.stream(request())
    await anext(stream)
    await stream.aclose()

    assert (model.active, model.aborted) == (0, 1)


async def test_waiting_for_a_stall_that_does_not_come_ends():
    with pytest.raises(TimeoutError, match="0 calls of 1 turns> did not stall"):
        await ScriptedModel(["a"]).wait_stalled(timeout=0.001)


async def test_a_turn_that_is_repeated_is_built_once():
    model = ScriptedModel([use("add", {"a": 1}, id="T")] * 1000)

    assert len({id(entry) for entry in model._queue}) == 1
