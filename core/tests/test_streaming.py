"""The consumer of `stream_async` sees boundaries in step, and may leave at any of them."""

from __future__ import annotations

import asyncio
import gc

import pytest
from kernel_fakes import FakeModel, FakeTool, collect, make_plugin, problems, results_of, statuses_of, use

from ropewalk import Agent, ConcurrencyException, ModelError


async def emitting(call):
    call.emit({"at": 1})
    return "ok"


def agent_of(*turns, **options):
    tool = FakeTool("t", options.pop("body", emitting))
    return Agent(model=FakeModel(*turns), tools=[tool], **options), tool


def kind_of(event):
    if event.get("type"):
        return event["type"]

    return f"{event['message']['role']} message" if "message" in event else next(iter(event))


async def test_events_come_in_order_and_the_result_last(quiet_loop):
    agent, _ = agent_of(["thinking", use("t")], "done")

    kinds = [kind_of(event) for event in await collect(agent, "go")]

    milestones = [k for k in kinds if k not in ("event", "data", "tool_use_stream")]
    cycle = [
        "start",
        "assistant message",
        "tools_starting",
        "tool_stream",
        "user message",
        "start",
        "assistant message",
    ]
    assert milestones == ["init_event_loop", *cycle, "result"]
    assert kinds.index("data") == kinds.index("event") + 2


@pytest.mark.parametrize("sight", ["tools_starting", "assistant message"])
async def test_a_consumer_that_cancels_on_seeing_a_tool_use_is_obeyed_before_the_tool_runs(sight, quiet_loop):
    agent, tool = agent_of(use("t", tool_use_id="T"), "done")
    last = None
    async for event in agent.stream_async("go"):
        last = event
        if kind_of(event) == sight:
            agent.cancel()

    assert last["result"].stop_reason == "cancelled"
    assert tool.calls == 0
    assert results_of(agent.messages) == {"T": "Tool execution cancelled"}


async def test_nothing_runs_while_the_consumer_thinks_about_a_boundary():
    agent, tool = agent_of(use("t"), "done")
    seen = []
    async for event in agent.stream_async("go"):
        seen.append(kind_of(event))
        for _ in range(20):
            await asyncio.sleep(0)

        if seen[-1] in ("tools_starting", "assistant message") and "user message" not in seen:
            assert tool.calls == 0
        elif seen[-1] == "user message":
            assert agent.model.calls == 1

    assert (tool.calls, agent.model.calls) == (1, 2)


async def test_deltas_run_ahead_of_the_consumer_up_to_a_bound():
    sent = []

    async def chatty():
        for n in range(5000):
            sent.append(n)
            yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}}

        yield {"messageStop": {"stopReason": "end_turn"}}

    agent = Agent(model=FakeModel(chatty))
    seen = ahead = 0
    async for event in agent.stream_async("go"):
        if "data" in event:
            seen += 1
            await asyncio.sleep(0)
            ahead = max(ahead, len(sent) - seen)

    assert seen == 5000
    assert 100 <= ahead <= 1100  # to hand over each by itself would cost a switch of tasks apiece


async def test_the_agent_is_free_when_the_consumer_has_the_result(quiet_loop):
    agent, _ = agent_of("one", "two")
    async for event in agent.stream_async("go"):
        if "result" in event:
            break

    assert str(await agent.invoke_async("again")) == "two\n"


POINTS = [
    "init_event_loop",
    "start",
    "event",
    "data",
    "assistant message",
    "tools_starting",
    "tool_stream",
    "user message",
]


async def settle_down():
    gc.collect(1)
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("leave", ["aclose", "break", "raise", "task"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_consumer_that_leaves_ends_the_run_and_frees_the_agent(point, leave, quiet_loop):
    agent, _ = agent_of(["hm", use("t")], "done", "again", "again")

    async def consume():
        events = agent.stream_async("go")
        async for event in events:
            if kind_of(event) == point:
                if leave == "aclose":
                    await events.aclose()
                elif leave == "raise":
                    raise ModelError("the consumer's own")
                elif leave == "task":
                    asyncio.current_task().cancel()
                    continue

                break

    task = asyncio.create_task(consume())
    await asyncio.wait([task])
    assert (leave == "task") == task.cancelled()
    assert task.cancelled() or isinstance(task.exception(), ModelError) == (leave == "raise")
    del task
    await settle_down()

    assert problems(agent.messages) == []
    agent.model = FakeModel("fresh")
    assert str(await agent.invoke_async("again")) == "fresh\n"


async def test_a_stream_that_is_never_begun_costs_nothing(quiet_loop):
    agent, _ = agent_of("one")
    events = agent.stream_async("go")
    await events.aclose()
    agent.stream_async("never")
    gc.collect()

    assert str(await agent.invoke_async("go")) == "one\n"


async def test_two_consumers_cannot_have_one_agent_and_the_first_goes_on(quiet_loop):
    agent, _ = agent_of(use("t"), "done")
    first = agent.stream_async("a")
    await anext(first)
    with pytest.raises(ConcurrencyException):
        await collect(agent, "b")

    rest = [event async for event in first]
    assert rest[-1]["result"].stop_reason == "end_turn"


async def test_two_agents_stream_side_by_side(quiet_loop):
    agents = [agent_of(use("t"), f"done {n}")[0] for n in range(5)]

    runs = await asyncio.gather(*(collect(agent, "go") for agent in agents))

    assert [str(events[-1]["result"]) for events in runs] == [f"done {n}\n" for n in range(5)]


async def test_an_error_comes_after_what_led_to_it(quiet_loop):
    agent, _ = agent_of(["hm", use("t", tool_use_id="T")], ModelError("broken"))
    kinds = []
    with pytest.raises(ModelError, match="broken"):  # noqa: PT012 - the loop is what raises
        async for event in agent.stream_async("go"):
            kinds.append(kind_of(event))  # noqa: PERF401 - what came before the error is kept

    assert kinds[-1] == "force_stop"
    assert statuses_of(agent.messages) == {"T": "success"}


async def test_an_error_without_a_text_of_its_own_still_reaches_the_consumer():
    class BrokenError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    agent, _ = agent_of(BrokenError())
    with pytest.raises(BrokenError):
        await collect(agent, "go")


async def test_a_model_may_send_any_kind_of_dict():
    class Sub(dict):
        pass

    agent = Agent(
        model=FakeModel(
            [
                Sub(contentBlockDelta=Sub(contentBlockIndex=0, delta=Sub(text="hi"))),
                Sub(messageStop=Sub(stopReason="end_turn")),
            ]
        )
    )
    events = await collect(agent, "go")

    assert [e["data"] for e in events if "data" in e] == ["hi"]


async def test_what_a_tool_shows_after_its_run_is_dropped():
    seen, late = [], []

    async def keep(call):
        late.append(call)

    def on_delta(self, event):
        seen.append(event)

    agent, _ = agent_of(use("t"), "done", body=keep, plugins=[make_plugin(on_delta=on_delta)])
    await agent.invoke_async("go")
    count = len(seen)
    late[0].emit("too late")
    await asyncio.to_thread(late[0].emit, "too late")
    await asyncio.sleep(0)

    assert len(seen) == count


async def test_arguments_are_shown_as_they_grow():
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "T", "name": "t"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"a"'}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": ":1}"}}}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    agent, _ = agent_of(events, "done")

    shown = [e["current_tool_use"] for e in await collect(agent, "go") if e.get("type") == "tool_use_stream"]

    assert [use_so_far["input"] for use_so_far in shown] == ['{"a"', '{"a":1}']
    assert {use_so_far["name"] for use_so_far in shown} == {"t"}
