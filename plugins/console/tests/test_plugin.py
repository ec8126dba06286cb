"""The plugin's hooks, called as the kernel calls them."""

from __future__ import annotations

import gc
import weakref

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.events import (
    AttemptDiscarded,
    CycleStarted,
    RawDelta,
    ReasoningDelta,
    RunEnded,
    RunFailed,
    TextDelta,
    ToolInputDelta,
    ToolStreamed,
)
from ropewalk_console import CallbackPlugin, ConsolePlugin, PrintingCallbackHandler, null_callback_handler
from ropewalk_console.plugin import SilentPlugin


class FakeAgent:
    """Something with an identity."""


def text(value):
    return TextDelta({"contentBlockDelta": {"delta": {"text": value}}}, value)


def thought(**piece):
    return ReasoningDelta({"contentBlockDelta": {}}, {"reasoningContent": piece})


def tool(name):
    return RawDelta({"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"name": name}}}})


@pytest.fixture
def agent():
    return FakeAgent()


# -- printing ------------------------------------------------------------------------------------------------------


def test_the_default_prints_thinking_answer_and_tools(agent, capsys):
    console = ConsolePlugin()
    for event in (
        thought(text="hm. "),
        thought(signature="s"),
        text("I add"),
        tool("add"),
        RawDelta({"messageStop": {}}),
    ):
        console.on_delta(event, agent)

    assert capsys.readouterr().out == "hm. I add\nTool #1: add\n"


def test_tools_are_numbered_per_agent(agent, capsys):
    console = ConsolePlugin()
    other = FakeAgent()
    for who in (agent, agent, other):
        console.on_delta(tool("add"), who)

    assert capsys.readouterr().out == "\nTool #1: add\n\nTool #2: add\n\nTool #1: add\n"


async def test_a_discarded_attempt_is_announced(agent, capsys):
    await ConsolePlugin().on_event(AttemptDiscarded(1, "throttled"), agent)
    await ConsolePlugin().on_event(CycleStarted(0), agent)

    assert capsys.readouterr().out == "\n[the answer starts again: throttled]\n"


@pytest.mark.parametrize("end", [RunEnded(None), RunFailed(ValueError("late"))], ids=["ended", "failed"])
async def test_the_end_of_a_run_ends_its_line_once(agent, capsys, end):
    console = ConsolePlugin()
    console.on_delta(text("It is 3."), agent)
    console.on_delta(text(""), agent)
    await console.on_event(CycleStarted(1), agent)
    for _ in range(2):
        await console.on_event(end, agent)

    assert capsys.readouterr().out == "It is 3.\n"


@pytest.mark.parametrize("last", [text("It is 3.\n"), tool("add"), text("")], ids=["text", "tool", "nothing"])
async def test_a_line_that_has_ended_is_not_ended_again(agent, capsys, last):
    console, other = ConsolePlugin(), FakeAgent()
    console.on_delta(last, agent)
    console.on_delta(text("of another agent"), other)
    before = capsys.readouterr().out
    await console.on_event(RunEnded(None), agent)

    assert before
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("make", [ConsolePlugin, lambda: CallbackPlugin(later)])
async def test_an_agent_is_not_kept_alive(make):
    plugin, agent = make(), FakeAgent()
    plugin.on_delta(tool("add"), agent)
    plugin.on_delta(text("half a line"), agent)
    gone = weakref.ref(agent)

    del agent

    gc.collect()
    assert gone() is None


async def later(**event):
    pass


# -- adoption ------------------------------------------------------------------------------------------------------


def test_a_callable_is_adopted():
    adopted = ConsolePlugin().adopt("callback_handler", PrintingCallbackHandler())

    assert isinstance(adopted, CallbackPlugin)
    assert adopted.name == "console"


@pytest.mark.parametrize("value", [None, null_callback_handler])
def test_silence_takes_no_part_in_runs(value):
    adopted = ConsolePlugin().adopt("callback_handler", value)

    assert isinstance(adopted, SilentPlugin)
    assert (adopted.name, hasattr(adopted, "on_delta"), hasattr(adopted, "on_event")) == ("console", False, False)


@pytest.mark.parametrize("value", [3, "print", PrintingCallbackHandler, ["a"]])
def test_what_cannot_be_called_is_refused(value):
    with pytest.raises(PluginError, match=r"Agent\(callback_handler=.*a callback handler is a function"):
        ConsolePlugin().adopt("callback_handler", value)


def test_other_parameters_are_left_alone():
    assert ConsolePlugin().adopt("retry_strategy", len) is None


# -- callbacks -----------------------------------------------------------------------------------------------------


EVENTS = [
    (text("a"), [{"event": {"contentBlockDelta": {"delta": {"text": "a"}}}}, {"data": "a", "delta": {"text": "a"}}]),
    (RawDelta({"messageStop": {}}), [{"event": {"messageStop": {}}}]),
    (
        ToolInputDelta({"raw": 1}, {"toolUse": {"input": "{"}}, {"toolUseId": "A", "name": "add"}, ["{"]),
        [
            {"event": {"raw": 1}},
            {
                "type": "tool_use_stream",
                "delta": {"toolUse": {"input": "{"}},
                "current_tool_use": {"toolUseId": "A", "name": "add", "input": "{"},
            },
        ],
    ),
    (
        ToolStreamed({"name": "add"}, 50),
        [{"type": "tool_stream", "tool_stream_event": {"tool_use": {"name": "add"}, "data": 50}}],
    ),
]


@pytest.mark.parametrize(("event", "expected"), EVENTS)
def test_a_handler_gets_each_piece_after_the_providers_event(agent, event, expected):
    seen = []

    CallbackPlugin(lambda **each: seen.append(each)).on_delta(event, agent)

    assert seen == expected


async def test_a_handler_gets_boundaries_and_the_result(agent):
    seen = []
    plugin = CallbackPlugin(lambda **each: seen.append(each))

    await plugin.on_event(CycleStarted(0), agent)
    await plugin.on_event(RunEnded("the result"), agent)

    assert seen == [{"start": True, "start_event_loop": True}, {"result": "the result"}]


async def test_an_asynchronous_handler_gets_pieces_at_the_next_boundary_in_order(agent):
    seen = []

    async def handler(**each):
        seen.append(next(iter(each)))

    plugin = CallbackPlugin(handler)
    plugin.on_delta(text("a"), agent)
    plugin.on_delta(RawDelta({"messageStop": {}}), agent)
    assert seen == []

    await plugin.on_event(RunEnded("the result"), agent)
    assert seen == ["event", "data", "event", "result"]


async def test_pieces_of_one_agent_do_not_reach_another(agent):
    seen = []

    async def handler(**each):
        seen.append(each)

    plugin = CallbackPlugin(handler)
    plugin.on_delta(RawDelta({"messageStop": {}}), FakeAgent())
    await plugin.on_event(RunEnded("mine"), agent)

    assert seen == [{"result": "mine"}]


async def test_what_a_handler_raises_leaves_the_hook(agent):
    def handler(**each):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        CallbackPlugin(handler).on_delta(text("a"), agent)
    with pytest.raises(ValueError, match="broken"):
        await CallbackPlugin(handler).on_event(RunEnded("r"), agent)


async def test_a_coroutine_in_disguise_is_refused_for_pieces_and_awaited_at_boundaries(agent):
    plugin = CallbackPlugin(lambda **each: later(**each))  # noqa: PLW0108 - the disguise

    with pytest.raises(PluginError, match="declare it with `async def`"):
        plugin.on_delta(text("a"), agent)
    await plugin.on_event(RunEnded("r"), agent)
