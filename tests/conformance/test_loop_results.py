"""Loop and messages: metrics, events and the callback handler (conformance 32 to 38)."""

from __future__ import annotations

import asyncio
import json

import pytest

from ropewalk import Agent, hookimpl, tool
from ropewalk.errors import IncompleteStreamError
from ropewalk.kits.calls.outcomes import Retry
from ropewalk_testing import ScriptedModel, text, turn, use


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def fail() -> str:
    """Fails."""
    raise RuntimeError("no")


# -- metrics -----------------------------------------------------------------------------------------------------


def test_the_usage_of_every_model_call_is_summed(ask, make_agent):
    """Conformance 32."""
    turns = [turn(use("add", {"a": 1, "b": 2}), stop="tool_use", usage=(10, 5)), turn("3", usage=(20, 7))]
    agent, _ = make_agent(turns, tools=[add])

    metrics = ask(agent, "go").metrics

    usage = metrics.accumulated_usage
    assert (usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]) == (30, 12, 42)
    assert metrics.cycle_count == 2


def test_the_usage_of_a_discarded_attempt_counts(ask, make_agent):
    """Conformance 32."""

    class Again:
        name = "again"
        asked = 0

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            self.asked += 1
            return Retry("not good enough") if self.asked == 1 else outcome

    agent, model = make_agent([turn("bad", usage=(10, 5)), turn("good", usage=(20, 7))], plugins=[Again()])

    result = ask(agent, "go")

    assert (str(result), model.calls, len(agent.messages)) == ("good\n", 2, 2)
    assert result.metrics.accumulated_usage["totalTokens"] == 42


def test_the_metrics_of_an_earlier_result_do_not_change(ask, make_agent):
    """Conformance 33 (B)."""
    turns = [
        turn(use("add", {"a": 1, "b": 2}), stop="tool_use", usage=(1, 1)),
        turn("a", usage=(1, 1)),
        turn(use("add", {"a": 3, "b": 4}), stop="tool_use", usage=(100, 100)),
        turn("b", usage=(100, 100)),
    ]
    agent, _ = make_agent(turns, tools=[add])

    first = ask(agent, "one")
    before = (dict(first.metrics.accumulated_usage), first.metrics.cycle_count)
    second = ask(agent, "two")

    assert (dict(first.metrics.accumulated_usage), first.metrics.cycle_count) == before
    assert first.metrics.tool_metrics["add"].call_count == 1
    assert second.metrics is not first.metrics
    assert second.metrics.accumulated_usage["totalTokens"] == 400
    assert second.metrics.tool_metrics["add"].call_count == 1


def test_tool_metrics_count_successes_and_errors(ask, make_agent):
    """Conformance 34."""
    turns = [
        [use("add", {"a": 1, "b": 2}), use("add", {"a": "x"}), use("fail", {})],
        [use("fail", {}), use("add", {"a": 3, "b": 4})],
        "ok",
    ]
    agent, _ = make_agent(turns, tools=[add, fail])

    metrics = ask(agent, "go").metrics

    counts = {n: (m.call_count, m.success_count, m.error_count) for n, m in metrics.tool_metrics.items()}
    assert counts == {"add": (3, 2, 1), "fail": (2, 0, 2)}
    assert metrics.tool_metrics["add"].total_time >= 0
    summary = metrics.get_summary()
    assert summary["total_cycles"] == metrics.cycle_count == 3
    assert summary["accumulated_usage"] == metrics.accumulated_usage
    assert set(summary["tool_usage"]) == {"add", "fail"}
    assert summary["average_cycle_time"] == pytest.approx(summary["total_duration"] / 3)
    json.dumps(summary, allow_nan=False)


def test_the_summary_of_a_call_without_a_cycle_is_whole(make_agent):
    """Conformance 34."""
    agent, _ = make_agent(["never"])
    agent.cancel()

    summary = agent("go").metrics.get_summary()

    assert (summary["total_cycles"], summary["average_cycle_time"], summary["tool_usage"]) == (0, 0, {})


# -- events ------------------------------------------------------------------------------------------------------


def kinds(events):
    """The telling key of each event."""
    order = ("init_event_loop", "start", "event", "data", "tools_starting", "message", "result", "type")
    return [next(key for key in order if key in event) for event in events]


def firsts(names):
    """Names in the order of their first appearance."""
    return list(dict.fromkeys(names))


def test_the_events_of_a_text_turn_come_in_order(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([turn("hi there", deltas=3)])

    events = events_of(agent, "hello")

    assert firsts(kinds(events)) == ["init_event_loop", "start", "event", "data", "message", "result"]
    assert events[0] == {"init_event_loop": True}
    assert events[1] == {"start": True, "start_event_loop": True}
    assert "".join(event["data"] for event in events if "data" in event) == "hi there"
    assert [event["delta"] for event in events if "data" in event] == [
        {"text": event["data"]} for event in events if "data" in event
    ]
    assert kinds(events)[-2:] == ["message", "result"]
    assert sum("result" in event for event in events) == 1


def test_each_piece_follows_its_raw_event(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([turn("hi there", deltas=2)])

    events = events_of(agent, "hello")

    for place, event in enumerate(events):
        if "data" in event and not event.get("complete"):
            raw = events[place - 1]["event"]
            assert raw["contentBlockDelta"]["delta"] == {"text": event["data"]}

    assert [next(iter(event["event"])) for event in events if "event" in event] == [
        *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockDelta", "contentBlockStop"),
        *("messageStop", "metadata"),
    ]


def test_a_block_of_text_ends_in_a_piece_that_says_it_is_complete(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([[text("first"), text("second")]])

    events = [event for event in events_of(agent, "hello") if "data" in event]

    assert [(event["data"], event.get("complete", False)) for event in events] == [
        *(("first", False), ("", True), ("second", False), ("", True)),
    ]


def test_a_tool_turn_shows_both_messages_and_two_cycles(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([[text("well"), use("add", {"a": 1, "b": 2}, id="T1")], "3"], tools=[add])

    events = events_of(agent, "go")

    assert sum("start_event_loop" in event for event in events) == 2
    assert [event["message"] for event in events if "message" in event] == list(agent.messages[1:])
    coarse = [kind for kind in kinds(events) if kind in {"start", "message", "tools_starting", "result"}]
    assert coarse == ["start", "message", "tools_starting", "message", "start", "message", "result"]
    (starting,) = [event["tools_starting"] for event in events if "tools_starting" in event]
    assert starting == [{"toolUseId": "T1", "name": "add", "input": {"a": 1, "b": 2}}]


def test_tool_arguments_are_shown_as_they_arrive(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([use("add", {"a": 1, "b": 2}, id="T1"), "3"], tools=[add])

    pieces = [event for event in events_of(agent, "go") if event.get("type") == "tool_use_stream"]

    assert pieces
    assert all(set(piece) == {"type", "delta", "current_tool_use"} for piece in pieces)
    assert pieces[-1]["current_tool_use"]["name"] == "add"
    assert pieces[-1]["current_tool_use"]["toolUseId"] == "T1"


def test_the_callers_state_is_not_spread_into_the_events(make_agent, events_of):
    """Conformance 35."""
    agent, _ = make_agent([use("add", {"a": 1, "b": 2}), "3"], tools=[add])

    events = events_of(agent, "go", invocation_state={"tenant": "acme"})

    assert not [event for event in events if "tenant" in event or "invocation_state" in event]


def test_a_failed_run_says_so_before_it_raises(make_agent):
    """Conformance 35."""
    agent, _ = make_agent([RuntimeError("down")])
    events = []

    async def follow():
        async for event in agent.stream_async("go"):
            events.append(event)  # noqa: PERF401 - what came before the error is what counts

    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(follow())

    assert events[-1]["force_stop"] is True
    assert "down" in events[-1]["force_stop_reason"]


def test_followers_are_told_that_an_attempt_does_not_count(make_agent, events_of, shape):
    """Conformance 35."""
    failures = []

    class Again:
        name = "again"

        @hookimpl
        async def decide_retry(self, failure):
            failures.append(failure)
            return 0.0 if failure.error.retryable else None

    agent, model = make_agent([turn("half", cut=True), "whole"], plugins=[Again()])

    events = [event for event in events_of(agent, "go") if not event.get("complete")]

    (told,) = [place for place, event in enumerate(events) if "attempt_discarded" in event]
    assert events[told]["attempt_discarded"]["attempt"] == 1
    assert [event["data"] for event in events[:told] if "data" in event] == ["half"]
    assert [event["data"] for event in events[told:] if "data" in event] == ["whole"]
    assert [(type(f.error), f.attempt, f.streamed) for f in failures] == [(IncompleteStreamError, 1, True)]
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]
    assert shape(model.requests[0].messages) == shape(model.requests[1].messages)


# -- the callback handler ----------------------------------------------------------------------------------------


def test_the_callback_handler_gets_every_event_and_the_result(events_of):
    """Conformance 37."""
    got = []
    model = ScriptedModel([[text("well"), use("add", {"a": 1, "b": 2})], turn("three", deltas=3)])
    agent = Agent(model=model, tools=[add], callback_handler=lambda **event: got.append(event))

    yielded = events_of(agent, "go")

    assert got == yielded
    assert str(got[-1]["result"]) == "three\n"


def test_the_callback_handler_works_for_every_way_to_call(ask):
    """Conformance 37."""
    got = []
    agent = Agent(model=ScriptedModel(["hi there"]), callback_handler=lambda **event: got.append(event))

    result = ask(agent, "go")

    assert "".join(event.get("data", "") for event in got) == "hi there"
    assert [event["result"] for event in got if "result" in event] == [result]


def test_no_callback_handler_is_silent(ask, capsys):
    """Conformance 38."""
    agent = Agent(model=ScriptedModel([use("add", {"a": 1, "b": 2}), "three"]), tools=[add], callback_handler=None)

    ask(agent, "go")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_the_default_prints_text_and_numbers_the_tools(ask, capsys):
    """Conformance 38."""
    turns = [[text("let me see"), use("add", {"a": 1, "b": 2})], use("add", {"a": 3, "b": 4}), "all done"]
    agent = Agent(model=ScriptedModel(turns), tools=[add])

    ask(agent, "go")

    out = capsys.readouterr().out
    places = [out.index(piece) for piece in ("let me see", "Tool #1: add", "Tool #2: add", "all done")]
    assert places == sorted(places)
    assert out.count("Tool #") == 2
