"""Hooks: which events happen, in which order, and to whom (lines 77 to 84, 96)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest

from ropewalk import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookEvent,
    HookOrder,
    HookProvider,
    MessageAddedEvent,
    tool,
)
from ropewalk_testing import use

EVENTS = [
    AgentInitializedEvent,
    BeforeInvocationEvent,
    AfterInvocationEvent,
    MessageAddedEvent,
    BeforeModelCallEvent,
    AfterModelCallEvent,
    BeforeToolsEvent,
    AfterToolsEvent,
    BeforeToolCallEvent,
    AfterToolCallEvent,
]


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class Recorder(HookProvider):
    """Notes every event, messages with their role."""

    def __init__(self):
        self.seen = []

    def register_hooks(self, registry):
        registry.add_callback(EVENTS, self.note)

    def note(self, event):
        name = type(event).__name__.removesuffix("Event")
        self.seen.append(f"{name}({event.message['role']})" if isinstance(event, MessageAddedEvent) else name)


def test_the_events_of_one_tool_turn_come_in_this_order(ask, make_agent):
    recorder = Recorder()
    agent, _ = make_agent([use("add", {"a": 1, "b": 2}, id="A"), "It is 3."], tools=[add], hooks=[recorder])

    assert str(ask(agent, "How much is 1 + 2?")) == "It is 3.\n"
    assert recorder.seen == [
        "AgentInitialized",
        "BeforeInvocation",
        "MessageAdded(user)",
        "BeforeModelCall",
        "AfterModelCall",
        "MessageAdded(assistant)",
        "BeforeTools",
        "BeforeToolCall",
        "AfterToolCall",
        "AfterTools",
        "MessageAdded(user)",
        "BeforeModelCall",
        "AfterModelCall",
        "MessageAdded(assistant)",
        "AfterInvocation",
    ]


def test_every_message_is_told_of_once_over_several_calls(ask, make_agent):
    told = []
    agent, _ = make_agent(["one", use("add", {"a": 1, "b": 2}, id="A"), "two"], tools=[add])
    agent.add_hook(lambda event: told.append(event.message), MessageAddedEvent)

    ask(agent, "first")
    ask(agent, [{"text": "second"}])

    assert told == list(agent.messages)
    assert len(told) == 6


def test_callbacks_of_equal_order_are_called_as_registered_and_for_after_events_in_reverse(ask, make_agent):
    called = []
    agent, _ = make_agent(["Hello."])
    for name in ("first", "second"):
        agent.add_hook(lambda event, name=name: called.append(("before", name)), BeforeModelCallEvent)
        agent.add_hook(lambda event, name=name: called.append(("after", name)), AfterModelCallEvent)

    ask(agent, "Hi.")

    assert called == [("before", "first"), ("before", "second"), ("after", "second"), ("after", "first")]


def test_the_numbers_of_the_order_are_never_reversed(ask, make_agent):
    called = []
    agent, _ = make_agent(["Hello."])
    for order in (HookOrder.SDK_LAST, 0.5, HookOrder.SDK_FIRST, HookOrder.DEFAULT):
        for event in (BeforeInvocationEvent, AfterInvocationEvent):
            agent.add_hook(lambda event, order=order: called.append(order), event, order=order)

    ask(agent, "Hi.")

    assert called == [-100, 0, 0.5, 100] * 2


def on_model(event: BeforeModelCallEvent):
    event.invocation_state["seen"].append(type(event).__name__)


def on_both(event: BeforeModelCallEvent | AfterModelCallEvent):
    event.invocation_state["seen"].append(type(event).__name__)


@pytest.mark.parametrize(
    ("callback", "event_type", "expected"),
    [
        (on_model, None, ["BeforeModelCallEvent"]),
        (on_both, None, ["BeforeModelCallEvent", "AfterModelCallEvent"]),
        (on_model, AfterModelCallEvent, ["AfterModelCallEvent"]),
        (
            on_model,
            [BeforeModelCallEvent, AfterModelCallEvent, BeforeModelCallEvent],
            ["BeforeModelCallEvent", "AfterModelCallEvent"],
        ),
    ],
    ids=["annotation", "union", "type", "list with one twice"],
)
def test_the_events_are_taken_from_annotation_union_type_or_list(ask, make_agent, callback, event_type, expected):
    agent, _ = make_agent(["Hello."])
    agent.add_hook(callback, event_type)
    state = {"seen": []}

    ask(agent, "Hi.", invocation_state=state)

    assert state["seen"] == expected


def optional(event: BeforeModelCallEvent | None): ...


def text(event: str): ...


def unannotated(event): ...


@pytest.mark.parametrize(
    ("callback", "event_type"),
    [
        (unannotated, None),
        (unannotated, []),
        (unannotated, [BeforeModelCallEvent, str]),
        (unannotated, str),
        (unannotated, HookEvent),
        (optional, None),
        (text, None),
        ("no callback", BeforeModelCallEvent),
    ],
)
def test_a_callback_without_proper_events_is_refused_and_changes_nothing(make_agent, callback, event_type):
    agent, _ = make_agent(["Hello."])
    before = agent.hooks

    with pytest.raises(ValueError):
        agent.add_hook(callback, event_type)

    assert agent.hooks is before


@pytest.mark.parametrize("hooks", [[unannotated], ["no callback"], [Recorder], [object()], Recorder()])
def test_what_is_no_hook_is_refused_when_the_agent_is_made(make_agent, hooks):
    with pytest.raises(ValueError):
        make_agent(["Hello."], hooks=hooks)


@pytest.mark.parametrize(
    ("event_type", "field"),
    [
        (BeforeInvocationEvent, "invocation_state"),
        (AfterInvocationEvent, "result"),
        (MessageAddedEvent, "message"),
        (BeforeModelCallEvent, "agent"),
        (BeforeModelCallEvent, "projected_input_tokens"),
        (AfterModelCallEvent, "stop_response"),
        (BeforeToolsEvent, "message"),
        (AfterToolsEvent, "message"),
        (BeforeToolCallEvent, "invocation_state"),
        (AfterToolCallEvent, "tool_use"),
        (AfterToolCallEvent, "colour"),
    ],
)
def test_writing_any_other_field_raises_an_error_that_names_field_and_event(ask, make_agent, event_type, field):
    agent, _ = make_agent([use("add", {"a": 1, "b": 2}, id="A"), "It is 3."], tools=[add])
    agent.add_hook(lambda event: setattr(event, field, None), event_type)

    with pytest.raises(AttributeError, match=f"{event_type.__name__}.{field} cannot be written"):
        ask(agent, "Hi.")


async def on_init(event: AgentInitializedEvent): ...


class AsyncObject:
    async def __call__(self, event: AgentInitializedEvent): ...


@pytest.mark.parametrize("callback", [on_init, AsyncObject(), functools.partial(on_init)])
def test_an_async_callback_for_the_construction_is_refused(make_agent, callback):
    with pytest.raises(ValueError, match="AgentInitializedEvent"):
        make_agent(["Hello."], hooks=[callback])


def test_the_construction_is_told_of_when_everything_is_in_place(make_agent):
    found = []

    def look(event: AgentInitializedEvent):
        found.append((event.agent.tool_names, event.agent.name))

    make_agent(["Hello."], tools=[add], name="Ada", hooks=[look])

    assert found == [(["add"], "Ada")]


class AsyncCall:
    def __init__(self, called):
        self.called = called

    async def __call__(self, event):
        self.called.append("object")

    async def method(self, event):
        self.called.append("method")


def test_async_callables_of_every_kind_are_awaited(ask, make_agent):
    called = []

    async def function(event):
        called.append("function")

    async def with_more(name, event):
        called.append(name)

    agent, _ = make_agent(["Hello."])
    holder = AsyncCall(called)
    for callback in (
        function,
        holder,
        holder.method,
        functools.partial(with_more, "partial"),
        functools.partial(holder),
        lambda event: function(event),  # noqa: PLW0108 - no coroutine function, and returns an awaitable
    ):
        agent.add_hook(callback, BeforeModelCallEvent)

    ask(agent, "Hi.")

    assert called == ["function", "object", "method", "partial", "object", "function"]


def test_events_reach_the_callbacks_of_exactly_their_class(ask, make_agent):
    @dataclass(eq=False)
    class Narrower(BeforeModelCallEvent):
        pass

    called = []
    agent, _ = make_agent(["Hello."])
    agent.add_hook(lambda event: called.append("base"), BeforeModelCallEvent)
    agent.add_hook(lambda event: called.append("narrower"), Narrower)

    ask(agent, "Hi.")

    assert called == ["base"]


def test_a_callback_added_during_the_run_counts_for_the_events_to_come(ask, make_agent):
    called = []

    def add_more(event: BeforeModelCallEvent):
        event.agent.add_hook(lambda event: called.append("after"), AfterModelCallEvent)
        event.agent.add_hook(lambda event: called.append("same event"), BeforeModelCallEvent)

    agent, _ = make_agent(["Hello."], hooks=[add_more])
    ask(agent, "Hi.")

    assert called == ["after"]


def test_direct_calls_have_the_events_of_a_tool_call(make_agent):
    recorder = Recorder()
    agent, _ = make_agent([], tools=[add], hooks=[recorder])

    agent.tool.add(a=1, b=2)

    assert recorder.seen[1:] == [
        "BeforeToolCall",
        "AfterToolCall",
        *["MessageAdded(user)", "MessageAdded(assistant)"] * 2,
    ]


def test_an_agent_without_callbacks_has_nothing_of_them_in_its_runs(make_agent):
    agent, _ = make_agent(["Hello."], hooks=[])
    links = [link for name in ("around_invocation", "around_model_call", "around_tools", "around_tool_call", "on_event")
             for link in getattr(agent.hooks.plan, name)]  # fmt: skip

    assert [link.plugin_name for link in links if link.plugin_name.startswith("hooks")] == []
